package snapshot

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog/refresh"
	"weir/pkg/machine/rpc"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsoncodec"
)

// How old knowledge of a machine may be. See docs/architecture.md.
const (
	freshFor   = 5 * time.Second  // used as it is
	usableFor  = 60 * time.Second // used, and confirmed after the answer
	unknownFor = 5 * time.Second  // a machine that does not exist is not looked for again
	claimFor   = 10 * time.Second // one request confirms; after that another may try
	forceEvery = time.Second      // for a key that is not in the snapshot
	clockSkew  = 2 * time.Second  // between the object's clock and ours
	defaultMax = 256              // machines
)

// ErrUnknown reports that there is no such machine.
var ErrUnknown = errors.New("snapshot: no such machine")

// Cache has the snapshots of an isolate.
//
// A snapshot is as old as the time since the object last confirmed its
// generation, or since the replica was published. KV has the configuration; what
// calls have shown, cooldowns and limits that were reached, comes from the object
// alone. Up to 5 s it is used; up to
// 60 s it is used and Revalidate is due; after that it is confirmed before
// use, so a revoked key dies within 60 s everywhere. No request waits for
// another: those that miss at once each load.
type Cache struct {
	KV     store.KV // nil on a platform whose objects are near: they alone are asked
	Object rpc.Stub
	Now    func() time.Time
	// Max is the number of machines kept, the least recently used go; zero
	// means 256.
	Max int
	// Log receives a line, without any content, for a stored value that was refused.
	// May be nil.
	Log func(line string)
	// Changed receives the id of a machine that Invalidate is called for. May be
	// nil.
	Changed func(machineID string)
	// PriceSource is where refreshed prices come from; nil for none.
	PriceSource *refresh.Source
	// Usable returns how old a snapshot may be that is used before it is confirmed; nil for 60 s.
	Usable func() time.Duration

	mu      sync.Mutex // of entries and uses
	entries map[string]*entry
	uses    uint64
	prices  prices
}

type entry struct {
	machine  *Machine  // nil when there is no such machine
	verified time.Time // of machine, or of its absence
	claimed  time.Time // when a request took it on itself to revalidate
	forced   time.Time
	stale    time.Time // when it was last invalidated: what was asked for before is older
	made     bool      // created or changed here: it may not be in KV yet
	looked   time.Time // when KV was last asked
	used     uint64
}

// Get returns the snapshot of a machine. The error is ErrUnknown, or a 503 if
// the present state of the machine cannot be read.
func (c *Cache) Get(ctx context.Context, machineID string) (*Machine, error) {
	now := c.Now()
	if m, absent := c.usable(machineID, now); m != nil {
		return m, nil
	} else if absent {
		return nil, ErrUnknown
	}
	return c.load(ctx, machineID, now)
}

// usable returns the snapshot of a machine if it may be used as it is. absent reports
// that there is no such machine.
func (c *Cache) usable(machineID string, now time.Time) (m *Machine, absent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[machineID]
	if e == nil {
		return nil, false
	}
	c.uses++
	e.used = c.uses
	switch {
	case e.machine == nil:
		return nil, within(now, e.verified, unknownFor)
	case within(now, e.verified, c.usableFor()):
		return e.machine, false
	}
	return nil, false
}

func (c *Cache) usableFor() time.Duration {
	if c.Usable != nil {
		return c.Usable()
	}
	return usableFor
}

// InMemory returns the snapshot of a machine if Get would return it at once, else nil.
func (c *Cache) InMemory(machineID string) *Machine {
	m, _ := c.usable(machineID, c.Now())
	return m
}

// Known is Get for a caller without anything that only the gateway can issue. A
// machine that this isolate does not know must be in KV; otherwise Known
// returns ErrUnknown without calling the object, which the call would create. A
// new machine is in KV within a minute. Without KV the object itself is asked
// whether there is such a machine.
func (c *Cache) Known(ctx context.Context, machineID string) (*Machine, error) {
	c.mu.Lock()
	e := c.entries[machineID]
	unknown := e == nil || e.machine == nil && !e.made
	c.mu.Unlock()
	if unknown && c.KV == nil {
		_, err := rpc.Call[struct{}](ctx, c.Object, machineID, "exists", nil)
		switch rpc.Status(err) {
		case 0:
			return nil, unavailable(err)
		case 404:
			return nil, ErrUnknown
		}
		c.mu.Lock()
		if e := c.entries[machineID]; e != nil && e.machine == nil {
			delete(c.entries, machineID) // its absence was noted before
		}
		c.mu.Unlock()
	} else if unknown {
		raw, err := c.KV.Get(ctx, "machine:"+machineID)
		if err != nil {
			return nil, unavailable(err)
		}
		if len(raw) == 0 {
			return nil, ErrUnknown
		}
	}
	return c.Get(ctx, machineID)
}

// due reports whether Revalidate would do something for the machine of an entry, which
// may be nil. The caller has the lock.
func (c *Cache) due(e *entry, now time.Time) bool {
	return e != nil && e.machine != nil && (!within(now, e.verified, freshFor) || c.lookDue(e, now)) &&
		!within(now, e.claimed, claimFor)
}

// lookDue reports whether KV is to be asked for a seed document. The caller has the lock.
func (c *Cache) lookDue(e *entry, now time.Time) bool {
	return c.KV != nil && !within(now, e.looked, lookEvery)
}

// Revalidate asks whether a snapshot in use is still the newest. It is called
// after an answer, by any request: the first one after 5 s does it, for the
// others it costs nothing. A failure leaves the snapshot to age.
func (c *Cache) Revalidate(ctx context.Context, machineID string) {
	c.loadPrices(ctx)
	now := c.Now()
	known, look := c.claim(machineID, now)
	if known == nil {
		return
	}
	if look {
		if _, adopted := c.replica(ctx, machineID, known); !adopted && c.release(machineID, now, true) {
			return
		}
	}
	if _, err := c.load(ctx, machineID, now); err == nil {
		c.release(machineID, now, false)
	}
}

// claim leaves the revalidation of a snapshot to the caller, if it is due, and returns the
// snapshot, else nil. look reports whether KV is to be asked for a seed document.
func (c *Cache) claim(machineID string, now time.Time) (known *Machine, look bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[machineID]
	if !c.due(e, now) {
		return nil, false
	}
	e.claimed = now
	if look = c.lookDue(e, now); look {
		e.looked = now
	}
	return e.machine, look
}

// release ends a claim and reports whether it did. With fresh it does so only if the
// snapshot is fresh.
func (c *Cache) release(machineID string, now time.Time, fresh bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[machineID]
	if e == nil || fresh && !within(now, e.verified, freshFor) {
		return false
	}
	e.claimed = time.Time{}
	return true
}

// Confirm returns the snapshot after asking for the newest state, at most once
// a second per machine; in between, and if the object does not answer, it
// returns the result of Get. So a key works at once after its creation.
func (c *Cache) Confirm(ctx context.Context, machineID string) (*Machine, error) {
	now := c.Now()
	c.mu.Lock()
	e := c.entries[machineID]
	force := e != nil && e.machine != nil && !within(now, e.forced, forceEvery)
	if force {
		e.forced = now
	}
	c.mu.Unlock()
	if !force {
		return c.Get(ctx, machineID)
	}
	m, err := c.load(ctx, machineID, now)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return c.Get(ctx, machineID)
	}
	return m, err
}

// Invalidate makes the next Get confirm: after a change made in this isolate.
func (c *Cache) Invalidate(machineID string) {
	now := c.Now()
	c.mu.Lock()
	e := c.entries[machineID]
	if e == nil {
		e = c.add(machineID)
	}
	e.invalidate(now)
	e.made = true
	c.mu.Unlock()
	if c.Changed != nil {
		c.Changed(machineID)
	}
}

// ChangedElsewhere makes the next Get confirm: after a change made in another
// instance of the program.
func (c *Cache) ChangedElsewhere(machineID string) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[machineID]; e != nil {
		e.invalidate(now)
	}
}

// Unchanged confirms the snapshots that were the newest at since or later: no instance of the
// program has changed these machines before at. ChangedElsewhere was called for the others.
func (c *Cache) Unchanged(since, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if e.machine != nil && !e.verified.Before(since) && e.verified.Before(at) {
			e.verified = at
		}
	}
}

func (e *entry) invalidate(now time.Time) {
	e.verified, e.claimed, e.forced, e.stale = time.Time{}, time.Time{}, time.Time{}, now
}

// within reports whether now is less than span after t. A clock that went back
// makes nothing younger.
func within(now, t time.Time, span time.Duration) bool {
	d := now.Sub(t)
	return d >= 0 && d < span
}

// lookEvery is how often KV is asked, after an answer, while the machine is known: it
// may have a seed document.
const lookEvery = time.Minute

// load asks the object for what has changed. For an unknown machine KV is asked at
// the same time: the object then only confirms the replica, whose configuration is
// parsed meanwhile. With the object down the replica alone will do while it is
// under 60 s old, with KV down the object alone.
func (c *Cache) load(ctx context.Context, machineID string, now time.Time) (*Machine, error) {
	var known, replica *Machine
	look := c.KV != nil
	c.mu.Lock()
	if e := c.entries[machineID]; e != nil {
		known, look = e.machine, look && e.machine == nil && !e.made
	}
	c.mu.Unlock()
	pending := rpc.Start(ctx, c.Object, machineID, "snapshot", query(known, look))
	if c.PriceSource != nil && c.prices.unread() { // many isolates serve one call only
		c.loadPrices(ctx)
	}
	if look {
		var adopted bool
		if replica, adopted = c.replica(ctx, machineID, known); adopted {
			pending.Wait() // its answer may be older than the document
			pending = rpc.Start(ctx, c.Object, machineID, "snapshot", query(known, false))
		}
	}
	m, err := c.confirmed(ctx, machineID, known, replica, pending, now)
	if look {
		c.looked(machineID, now)
	}
	if err == nil || errors.Is(err, ErrUnknown) {
		return m, err
	}
	if !look { // KV may have a newer one than what is known
		replica, _ = c.replica(ctx, machineID, known)
	}
	// The object is down. A replica published less than 60 s ago is used.
	if replica != nil {
		at := time.UnixMilli(replica.PublishedAt)
		if ahead := at.Sub(now); ahead > 0 && ahead < clockSkew {
			at = now
		}
		if within(now, at, c.usableFor()) {
			return c.keep(machineID, replica, at), nil
		}
	}
	return nil, unavailable(err)
}

// looked notes that KV was asked.
func (c *Cache) looked(machineID string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[machineID]; e != nil {
		e.looked = now
	}
}

// query asks for what has changed since m, or to confirm the replica in KV.
func query(m *Machine, confirm bool) []byte {
	q := rpc.SnapshotQuery{Confirm: confirm}
	if m != nil {
		q.Have, q.Observed = m.Generation, m.Observed()
	}
	b, _ := jsoncodec.Marshal(q)
	return b
}

// confirmed waits for the answer to a query and returns the machine as the object
// has it. If the object has another configuration than the replica, it is asked
// for that.
func (c *Cache) confirmed(ctx context.Context, machineID string, known, replica *Machine, pending rpc.Pending,
	now time.Time) (*Machine, error) {
	var observed int64 // when the object was asked
	if known != nil {
		observed = known.Observed()
	}
	for {
		status, answer, err := pending.Wait()
		switch {
		case err != nil:
			return nil, err
		case status == 404:
			c.keep(machineID, nil, now)
			return nil, ErrUnknown
		case status != 200:
			return nil, errors.New("snapshot: the object answered with status " + strconv.Itoa(status))
		case !gjson.GetBytes(answer, "same").Exists():
			m, err := Parse(machineID, answer)
			if err != nil {
				return nil, err
			}
			return c.keep(machineID, m, now), nil
		}
		var same rpc.Same
		if err := jsoncodec.Unmarshal(answer, &same); err != nil {
			return nil, errors.New("snapshot: the object's answer is not readable")
		}
		m := known
		if replica != nil && (m == nil || replica.Generation > m.Generation) {
			m = replica
		}
		switch {
		case m != nil && m.Generation == same.Generation && (same.State != nil || m.Observed() == same.Observed):
			c.mu.Lock()
			defer c.mu.Unlock()
			m = c.put(machineID, m, now)
			if same.State != nil && m.Generation == same.Generation {
				m.Observe(observed, same.Observed, same.State, now.UnixMilli())
			}
			return m, nil
		case same.Same:
			return nil, errors.New("snapshot: the object confirmed a generation that was not asked for")
		}
		pending = rpc.Start(ctx, c.Object, machineID, "snapshot", query(nil, false))
	}
}

// replica reads the stored value. A seed document, one without "v", goes to
// the object, which imports or refuses it; adopted reports that. It returns nil
// without a usable replica, and known itself if that is the same generation.
func (c *Cache) replica(ctx context.Context, machineID string, known *Machine) (m *Machine, adopted bool) {
	if c.KV == nil {
		return nil, false
	}
	raw, err := c.KV.Get(ctx, "machine:"+machineID)
	if err != nil || len(raw) == 0 {
		return nil, false
	}
	if !gjson.ValidBytes(raw) {
		c.log("machine:" + machineID + ": the stored value is not JSON and was ignored")
		return nil, false
	}
	if !gjson.GetBytes(raw, "v").Exists() {
		body := append(append([]byte(`{"doc":`), raw...), '}')
		c.Object.Call(ctx, machineID, "adopt", body) // what came of it is in the snapshot asked for next
		return nil, true
	}
	if known != nil && gjson.GetBytes(raw, "machineId").Str == machineID &&
		gjson.GetBytes(raw, "generation").Int() == known.Generation &&
		gjson.GetBytes(raw, "publishedAt").Int() == known.PublishedAt {
		return known, false
	}
	if m, err = Parse(machineID, raw); err != nil {
		c.log("machine:" + machineID + ": " + err.Error())
		return nil, false
	}
	return m, false
}

// keep stores a snapshot of a time unless a newer one is stored, and returns
// the stored one.
func (c *Cache) keep(machineID string, m *Machine, verified time.Time) *Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put(machineID, m, verified)
}

// put is keep for a caller that has the lock.
func (c *Cache) put(machineID string, m *Machine, verified time.Time) *Machine {
	now := c.Now()
	e := c.entries[machineID]
	if e == nil {
		e = c.add(machineID)
	} else if e.machine != nil && m != nil && e.verified.After(verified) && !e.verified.After(now) {
		return e.machine
	}
	old := e.machine
	if old != nil && m != nil && m.cached && m.Local != old.Local {
		return old // m was forgotten meanwhile, and old was loaded since
	}
	c.uses++
	e.used = c.uses
	if m != nil && !m.cached {
		if old != nil {
			m.Local = old.Local
		}
		if c.PriceSource != nil {
			m.prices = &c.prices
		}
		m.cached = true
	}
	if old != nil && m != nil && old != m {
		m.renew(old, now.UnixMilli())
	}
	e.machine, e.verified = m, verified
	if verified.Before(e.stale) {
		e.verified = time.Time{}
	}
	return m
}

// add adds an entry, for which others make room. The caller has the lock.
func (c *Cache) add(machineID string) *entry {
	c.evict()
	if c.entries == nil {
		c.entries = map[string]*entry{}
	}
	c.uses++
	e := &entry{used: c.uses}
	c.entries[machineID] = e
	return e
}

// evict makes room for one more machine.
func (c *Cache) evict() {
	limit := c.Max
	if limit <= 0 {
		limit = defaultMax
	}
	for len(c.entries) >= limit {
		var oldest string
		var used uint64
		for id, e := range c.entries {
			if oldest == "" || e.used < used {
				oldest, used = id, e.used
			}
		}
		delete(c.entries, oldest)
	}
}

func (c *Cache) log(line string) {
	if c.Log != nil {
		c.Log(line)
	}
}

func unavailable(cause error) error {
	e := apierr.New(503, "unavailable", "The machine's settings cannot be read at the moment.")
	e.RetryAfter = time.Second
	e.Err = cause
	return e
}
