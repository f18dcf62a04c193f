package rpc

import (
	"crypto/subtle"
	"fmt"
	"io"
	"strings"

	"weir/pkg/wire/apierr"
)

// A lease is a right to one new key of a machine, which a set-up script presents.
//
//	setup-<machineId>-<leaseId>-<check>  as a key, docs/reference/spec.md, 5.1
//
//	lease.claim  ClaimLease  200 ClaimedLease; 403 used, expired, or not of this machine

const leasePrefix = "setup-"

// ClaimLease exchanges a lease for a key. Digest is KeyDigest of the lease.
type ClaimLease struct {
	Digest string `json:"digest"`
	Tool   string `json:"tool"` // whose script presents it
}

// ClaimedLease is the new key, which is shown once, and the models to write with it.
type ClaimedLease struct {
	APIKey     string `json:"apiKey"`
	Model      string `json:"model"`
	SmallModel string `json:"smallModel"`
}

// Lease is the object's answer to POST /api/setup.
type Lease struct {
	Tool       string `json:"tool"`
	Text       string `json:"lease"`
	Model      string `json:"model"`
	SmallModel string `json:"smallModel"`
	ExpiresAt  int64  `json:"expiresAt"` // Unix milliseconds
}

// ErrLease returns the refusal of every lease that cannot be used, without the reason:
// a lease that was used is not stored any more.
func ErrLease() error {
	return apierr.New(403, "invalid_lease", "This set-up command was used already, or has expired. Copy a new one from the dashboard.")
}

// MintLease returns a new lease of a machine. Only its digest is stored.
func MintLease(random io.Reader, secret []byte, machineID string) (string, error) {
	id, err := NewID(random, minKeyID)
	if err != nil {
		return "", fmt.Errorf("create a lease: %w", err)
	}
	return leasePrefix + machineID + "-" + id + "-" + leaseCheck(secret, machineID, id), nil
}

// LeaseMachine returns the machine of a lease. It reports false for a text that this
// gateway has not created, so that no object is asked about it.
func LeaseMachine(secret []byte, text string) (machineID string, ok bool) {
	rest, ok := strings.CutPrefix(text, leasePrefix)
	parts := strings.Split(rest, "-")
	if !ok || len(text) > MaxKey || len(parts) != 3 || !IsMachineID(parts[0]) || !IsLowerAlphanumeric(parts[1], minKeyID) {
		return "", false
	}
	want := leaseCheck(secret, parts[0], parts[1])
	return parts[0], subtle.ConstantTimeCompare([]byte(parts[2]), []byte(want)) == 1
}

// leaseCheck differs from the check of a key with the same id.
func leaseCheck(secret []byte, machineID, id string) string {
	return check(secret, leasePrefix+machineID, id)
}
