package machine

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
)

const (
	deviceLife     = rpc.DeviceSeconds * 1000
	deviceInterval = rpc.DeviceInterval // what is added for a poll that is too early, too
	deviceLongest  = 60                 // seconds
	maxDevices     = 100
	deviceTries    = 5 // wrong user codes of one credential in attemptWindow

	// deviceLetters make no words, and are not mistaken for one another (RFC 8628, 6.1).
	deviceLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLen   = 8 // 34 bits
)

// deviceRow is a sign-in of a device, under the digest of its code.
type deviceRow struct {
	rpc.Device
	UserCode  string `json:"userCode"`
	Interval  int64  `json:"interval"` // seconds
	PollFrom  int64  `json:"pollFrom"` // earlier polls are too early
	MachineID string `json:"machineId,omitempty"`
	Denied    bool   `json:"denied,omitempty"`
}

// devices returns the sign-ins that have not expired, and drops the others.
func devices(r *storage.Call) (live []deviceRow) {
	for _, row := range r.List(storage.DevicePrefix) {
		var d deviceRow
		if !r.Load(row.Key, &d) || d.ExpiresAt <= r.Now || d.CreatedAt > r.Now {
			r.Del(row.Key)
			continue
		}
		d.Digest = strings.TrimPrefix(row.Key, storage.DevicePrefix)
		live = append(live, d)
	}
	return live
}

func putDevice(r *storage.Call, d deviceRow) {
	name := storage.DevicePrefix + d.Digest
	d.Digest = ""
	r.Put(name, d)
}

// deviceStart stores a sign-in that waits for an approval. From an address, as many may be
// started as sign-ins may fail.
func (o *Object) deviceStart(r *storage.Call) (any, error) {
	var in rpc.DeviceStart
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	if err := attempt(r, storage.DigestOf("device", in.From), attemptMost); err != nil {
		return nil, err
	}
	live := devices(r)
	if len(live) >= maxDevices {
		return nil, tooMany(storage.Minute)
	}
	code, err := userCode(o.Rand)
	if err != nil {
		return nil, err
	}
	d := deviceRow{Device: rpc.Device{Digest: in.Digest, Name: in.Name, Address: in.Address, CreatedAt: r.Now,
		ExpiresAt: r.Now + deviceLife}, UserCode: code, Interval: deviceInterval}
	putDevice(r, d)
	return rpc.DeviceStarted{UserCode: code, ExpiresAt: d.ExpiresAt}, nil
}

// userCode returns random letters, each as likely as the others.
func userCode(random io.Reader) (string, error) {
	code := make([]byte, 0, userCodeLen)
	for len(code) < userCodeLen {
		var b [1]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", fmt.Errorf("create a user code: %w", err)
		}
		if n := int(b[0]); n < 256-256%len(deviceLetters) {
			code = append(code, deviceLetters[n%len(deviceLetters)])
		}
	}
	return string(code), nil
}

// deviceFind returns the sign-in of a user code. After five wrong codes of a key it finds
// none until they have all expired.
func (o *Object) deviceFind(r *storage.Call) (any, error) {
	var in rpc.DeviceFind
	if json.Unmarshal(r.Body, &in) != nil || in.Who == "" {
		return nil, apierr.Invalid("who", "who is not valid.")
	}
	who := storage.DigestOf("device", in.Who)
	if err := waiting(r, who); err != nil {
		return nil, err
	}
	for _, d := range devices(r) {
		if d.UserCode == in.UserCode && d.MachineID == "" && !d.Denied {
			return d.Device, nil
		}
	}
	if in.Who == "operator" { // may do everything, and is one for all who have the token
		return nil, errUnknownCode()
	}
	if err := attempt(r, who, deviceTries-1); err != nil {
		return nil, err
	}
	if err := r.Commit(); err != nil {
		return nil, err
	}
	return nil, errUnknownCode()
}

func errUnknownCode() error {
	return apierr.New(404, "unknown_code",
		"No sign-in waits with this code. Compare it with the terminal; it is valid for ten minutes.")
}

// deviceDecide stores whether a sign-in was approved, and for which machine.
func (o *Object) deviceDecide(r *storage.Call) (any, error) {
	var in rpc.DeviceDecide
	var d deviceRow
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) ||
		in.MachineID != "" && !rpc.IsMachineID(in.MachineID) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	if !r.Load(storage.DevicePrefix+in.Digest, &d) || d.ExpiresAt <= r.Now || d.MachineID != "" || d.Denied {
		return nil, errUnknownCode()
	}
	d.Digest, d.MachineID, d.Denied = in.Digest, in.MachineID, in.MachineID == ""
	putDevice(r, d)
	return struct{}{}, nil
}

// devicePoll returns the machine of an approved sign-in.
func (o *Object) devicePoll(r *storage.Call) (any, error) {
	var in rpc.DeviceFind
	var d deviceRow
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) || !r.Load(storage.DevicePrefix+in.Digest, &d) ||
		d.ExpiresAt <= r.Now {
		return nil, rpc.ErrDeviceExpired()
	}
	if d.MachineID != "" { // the lease there is claimed once; a claim that fails can be repeated
		return rpc.DeviceMachine{MachineID: d.MachineID}, nil
	}
	err := apierr.New(400, "authorization_pending", "The sign-in is not approved yet.")
	switch {
	case d.Denied:
		return nil, apierr.New(400, "access_denied", "The sign-in was denied in the dashboard.")
	case r.Now < d.PollFrom && d.Interval >= deviceLongest: // stores nothing, whoever polls
		return nil, apierr.New(400, "slow_down", "Poll less often: the interval is %d seconds now.", d.Interval)
	case r.Now < d.PollFrom:
		d.Interval += deviceInterval
		err = apierr.New(400, "slow_down", "Poll less often: the interval is %d seconds now.", d.Interval)
	}
	d.Digest, d.PollFrom = in.Digest, r.Now+(d.Interval-1)*1000 // a second for the network
	putDevice(r, d)
	if e := r.Commit(); e != nil {
		return nil, e
	}
	return nil, err
}
