package rpc

import (
	"crypto/subtle"
	"fmt"
	"io"
	"strings"

	"weir/pkg/wire/apierr"
)

// A sign-in of a device, in the shape of RFC 8628 with weir as the server: weir login shows
// a code, and someone who is signed in to the dashboard approves it for a machine. The
// registry has the sign-in until it expires. Approved, it is a lease of the machine under the
// digest of the device code, which the next poll exchanges for a key.
//
//	device.start  DeviceStart  200 DeviceStarted; 429 too_many_attempts   (registry)
//	device.find   DeviceFind   200 Device; 404 unknown_code; 429          (registry)
//	device.decide DeviceDecide 200 {}; 404                                (registry)
//	device.poll   DeviceFind   200 DeviceMachine; 400 authorization_pending, slow_down,
//	                           access_denied, expired_token               (registry)
//
//	device-<id>-<check>  the device code; its check digits keep forged ones from the registry

// DeviceStart asks for a sign-in.
type DeviceStart struct {
	Digest  string `json:"digest"` // KeyDigest of the device code
	Name    string `json:"name"`   // of the computer, as it says itself
	From    string `json:"from"`   // a digest of the client's address
	Address string `json:"address,omitempty"`
}

// DeviceSeconds is how long a sign-in of a device waits, DeviceInterval the time between its polls,
// in seconds.
const (
	DeviceSeconds  = 600
	DeviceInterval = 5
)

// DeviceStarted is a new sign-in.
type DeviceStarted struct {
	UserCode  string `json:"userCode"`
	ExpiresAt int64  `json:"expiresAt"` // Unix milliseconds
}

// DeviceFind asks for a sign-in by its user code, in the name of whoever is signed in, or by
// its digest.
type DeviceFind struct {
	UserCode string `json:"userCode,omitempty"`
	Who      string `json:"who,omitempty"` // a digest of the credential
	Digest   string `json:"digest,omitempty"`
}

// Device is a sign-in that waits for an approval.
type Device struct {
	Digest    string `json:"digest,omitempty"`
	Name      string `json:"name"`
	Address   string `json:"address,omitempty"`
	CreatedAt int64  `json:"createdAt"`
	ExpiresAt int64  `json:"expiresAt"`
}

// DeviceDecide ends a sign-in: for a machine, or with "" denied.
type DeviceDecide struct {
	Digest    string `json:"digest"`
	MachineID string `json:"machineId"`
}

// DeviceMachine is where an approved sign-in claims its key.
type DeviceMachine struct {
	MachineID string `json:"machineId"`
}

// DeviceTool is ClaimLease.Tool of a sign-in.
const DeviceTool = "device"

const (
	devicePrefix  = "device-"
	deviceCodeLen = 32 // of 36 characters: 165 bits
)

// MintDeviceCode returns a new device code. Only its digest is stored.
func MintDeviceCode(random io.Reader, secret []byte) (string, error) {
	id, err := NewID(random, deviceCodeLen)
	if err != nil {
		return "", fmt.Errorf("create a device code: %w", err)
	}
	return devicePrefix + id + "-" + check(secret, devicePrefix, id), nil
}

// IsDeviceCode reports whether this gateway has created a device code.
func IsDeviceCode(secret []byte, text string) bool {
	rest, ok := strings.CutPrefix(text, devicePrefix)
	id, got, _ := strings.Cut(rest, "-")
	return ok && IsLowerAlphanumeric(id, deviceCodeLen) &&
		subtle.ConstantTimeCompare([]byte(got), []byte(check(secret, devicePrefix, id))) == 1
}

// ErrDeviceExpired returns the refusal of a device code that was used, or has expired.
func ErrDeviceExpired() error {
	return apierr.New(400, "expired_token", "This sign-in has expired or was used. Run weir login again.")
}
