package manage

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const (
	deviceLeaseFor = 10 * storage.Minute
	deviceKeyFor   = 30 * storage.Day
)

// deviceDecide stores that the caller approves or denies the sign-in of a device, which the
// gateway has found by its code. Approved, it is a lease under the digest of the device code.
func (c *change) deviceDecide() (any, error) {
	in := c.input()
	in.only("approve", "digest", "name")
	approve, given := in.bool("approve")
	digest, _ := in.text("digest", 64)
	name, _ := in.text("name", 100)
	if !given {
		in.fail("approve", "is required: true or false")
	}
	if !rpc.IsDigest(digest) {
		in.fail("digest", "is not valid")
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	c.target, c.fields, c.status = name, []string{"approve"}, 204
	if !approve {
		c.fields = []string{"deny"}
		return struct{}{}, nil
	}
	if err := c.mayGrant([]string{"manage"}); err != nil {
		return nil, err
	}
	if err := c.roomForLease(); err != nil {
		return nil, err
	}
	c.Put(storage.LeasePrefix+digest, storage.Lease{Device: name, KeyID: c.env.KeyID, KeyDigest: c.env.KeyDigest,
		Person: c.env.Person, ExpiresAt: c.Now + deviceLeaseFor})
	return struct{}{}, nil
}

// deviceKey returns the key of a device: it may manage the machine for 30 days, and no longer
// than the key that has approved it, whose time until is 0 for none.
func deviceKey(name string, now, until int64) store.Key {
	k := store.Key{Name: "weir on " + name, Scopes: []string{"manage"}, ExpiresAt: now + deviceKeyFor}
	if until != 0 {
		k.ExpiresAt = min(k.ExpiresAt, until)
	}
	return k
}
