package machine

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/redact"
)

// Reports of isolates are buffered in memory and written together: the first
// after a pause at once, later ones every 10 s, or with another change of the
// machine. A program that is killed loses the usage, the requests, the health and
// the cooldowns that were reported in these seconds. Nothing else is buffered:
// counts of limited keys are written at once. See
// docs/decisions/0081-reports-are-buffered.md.

const flushEvery = 10_000 // ms

// Bounds of the buffer. A report beyond them is written at once.
const (
	maxBuffered      = 2 << 20   // bytes of all reports
	maxBufferedEach  = 768 << 10 // bytes of those of one machine
	maxBufferedKinds = 200       // rows of usage of one machine; usage.Add adds up more than 256 without their models
	maxBufferedList  = 500       // entries of the other lists of one machine
	// maxBufferedLines is the number of requests of one machine. A machine that lists
	// fewer buffers fewer, and thins them, so that a flush writes few rows.
	maxBufferedLines = 2000
	maxMachines      = 1024
)

// pending are the reports of a machine that are not written, as one.
type pending struct {
	rpc.Report
	At       int64 `json:"at"`                 // of the last report; 0 from an earlier version
	Size     int   `json:"size"`               // of the reports, in bytes
	Observed int64 `json:"observed,omitempty"` // of the state with the reports; 0 if they do not change it
}

// entry is what the buffer knows of a machine.
type entry struct {
	pending *pending // nil for none
	written int64    // when reports were last written
	wake    int64    // the alarm that was set for them; 0 for none
}

// buffers are the buffers of all machines whose objects run in this program. The turns
// of different machines use them at the same time.
type buffers struct {
	mu       sync.Mutex // of these fields and of all entries
	machines map[string]*entry
	size     int
	// closed reports that another program serves the machines from now on.
	closed bool
}

// entry returns what is known of a machine. The caller has the lock.
func (b *buffers) entry(id string) *entry {
	e := b.machines[id]
	if e == nil {
		if b.machines == nil {
			b.machines = map[string]*entry{}
		}
		for other, e := range b.machines {
			if len(b.machines) < maxMachines {
				break
			}
			if e.pending == nil {
				delete(b.machines, other)
			}
		}
		e = &entry{}
		b.machines[id] = e
	}
	return e
}

// drop forgets a machine that was deleted.
func (b *buffers) drop(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.machines[id]; e != nil && e.pending != nil {
		b.size -= e.pending.Size
	}
	delete(b.machines, id)
}

// turn is the buffer of a machine within a turn. It implements storage.Buffer.
type turn struct {
	o  *Object
	tx *storage.Tx
	// settles reports that the turn sees what is buffered. taken is that, while
	// it is in the turn and not yet written.
	settles bool
	taken   *pending
}

// settle puts what is buffered into the turn.
func (b *turn) settle() {
	b.settles = true
	if b.taken != nil {
		return
	}
	if b.taken = b.o.buffers.take(b.tx.ID); b.taken == nil {
		return
	}
	observed := max(b.tx.Meta.Observed, b.taken.Observed) // callers were told
	b.o.export(b.tx, apply(b.tx, b.taken), b.taken.Unlisted)
	b.o.count(b.tx, &b.taken.Report)
	b.o.addNetworks(b.tx, b.taken.Networks)
	b.tx.Meta.Observed = observed
	b.tx.Settled()
}

// take removes what is buffered of a machine and returns it, or nil.
func (b *buffers) take(id string) *pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.machines[id]
	if e == nil || e.pending == nil {
		return nil
	}
	p := e.pending
	e.pending = nil
	b.size -= p.Size
	return p
}

// release returns what was not written to the buffer.
func (b *turn) release() {
	if b.taken == nil {
		return
	}
	old := b.taken
	b.taken = nil
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	e := b.o.buffers.entry(b.tx.ID)
	if e.pending != nil {
		b.o.buffers.size -= e.pending.Size
		old.add(&e.pending.Report, e.pending.Size, e.pending.Observed, b.lines())
	}
	e.pending = old
	b.o.buffers.size += old.Size
}

// Reloaded implements storage.Buffer.
func (b *turn) Reloaded() {
	b.release()
	if b.settles {
		b.settle()
	}
}

// Written implements storage.Buffer.
func (b *turn) Written() {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	if b.taken != nil {
		b.taken = nil
		b.o.buffers.entry(b.tx.ID).written = b.tx.Now
	}
	if at, _ := b.wakeAt(); at != 0 {
		b.o.buffers.entry(b.tx.ID).wake = at
	}
}

// WakeAt implements storage.Buffer.
func (b *turn) WakeAt() (at int64, set bool) {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	return b.wakeAt()
}

func (b *turn) wakeAt() (at int64, set bool) {
	e := b.o.buffers.machines[b.tx.ID]
	if e == nil || e.pending == nil {
		return 0, false
	}
	at = e.written + flushEvery
	return at, e.wake == at
}

// waits reports whether reports are buffered.
func (b *turn) waits() bool {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	e := b.o.buffers.machines[b.tx.ID]
	return e != nil && e.pending != nil
}

// ofAnotherHour reports whether what is buffered was not reported in this hour.
func (b *turn) ofAnotherHour() bool {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	e := b.o.buffers.machines[b.tx.ID]
	return e != nil && e.pending != nil && e.pending.At/storage.Hour != b.tx.Now/storage.Hour
}

// discard drops what is buffered.
func (b *turn) discard() {
	b.release()
	b.o.buffers.drop(b.tx.ID)
}

// observed returns the number of the state with what is buffered; 0 if that does not
// change it.
func (b *turn) observed() int64 {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	if e := b.o.buffers.machines[b.tx.ID]; e != nil && e.pending != nil {
		return e.pending.Observed
	}
	return 0
}

// woken notes that the alarm of the machine has gone off.
func (b *turn) woken() {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	if e := b.o.buffers.machines[b.tx.ID]; e != nil {
		e.wake = 0
	}
}

// lines returns how many requests are buffered. While the storage fails there are more
// than maxBufferedLines. Exports have them all.
func (b *turn) lines() int {
	if b.tx.Meta.Logs || b.tx.Meta.Traced {
		return 2 * maxBufferedLines
	}
	return int(min(cmp.Or(b.o.MaxRequests, storage.MaxRequests), 2*maxBufferedLines))
}

// add buffers a report and returns the Observed of the state that has it.
func (b *turn) add(rep *rpc.Report, size int) int64 {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	e := b.o.buffers.entry(b.tx.ID)
	known := b.tx.Meta.Observed
	if e.pending == nil {
		e.pending = &pending{}
	} else {
		known = max(known, e.pending.Observed)
	}
	observed := int64(0)
	moved := slices.ContainsFunc(rep.Quotas, func(q rpc.Quota) bool { return q.Moved })
	if moved || len(rep.Cooldowns)+len(rep.Cleared)+len(rep.Refusals) > 0 {
		observed = max(known+1, b.tx.Now)
	}
	e.pending.add(rep, size, observed, b.lines())
	e.pending.At = b.tx.Now
	b.o.buffers.size += size
	return max(known, observed)
}

// add adds a report. Of the requests it keeps most, or fewer. Clients choose the names of
// models, which may be a credential in the wrong place.
func (p *pending) add(rep *rpc.Report, size int, observed int64, most int) {
	for i := range rep.Cooldowns {
		rep.Cooldowns[i].Model = redact.Patterns(rep.Cooldowns[i].Model)
	}
	p.Cooldowns = append(p.Cooldowns, rep.Cooldowns...)
	p.Cleared = append(p.Cleared, rep.Cleared...)
	p.Errors = append(p.Errors, rep.Errors...)
	p.Refusals = append(p.Refusals, rep.Refusals...)
	for i := range rep.Quotas {
		p.addQuota(&rep.Quotas[i])
	}
	for _, u := range rep.Usage {
		if u.Valid() {
			u.Model = redact.Patterns(u.Model)
			p.Usage = usage.Add(p.Usage, u)
		}
	}
	p.Labels = usage.AddLabels(p.Labels, storage.TidyLabels(rep.Labels), usage.MaxValues)
	for i := range rep.Networks {
		p.Networks = store.AddNetwork(p.Networks, &rep.Networks[i], maxBufferedList)
	}
	p.Requests = append(p.Requests, rep.Requests...)
	p.Unlisted += max(rep.Unlisted, 0)
	p.UnlistedFailed += max(rep.UnlistedFailed, 0)
	if n := len(p.Requests); n > most {
		var lost int
		p.Requests, lost = store.Thin(p.Requests, most*5/8, most/8)
		p.Unlisted += int64(n - len(p.Requests))
		p.UnlistedFailed += int64(lost)
	}
	p.Size += size
	p.Observed = max(p.Observed, observed)
}

// addQuota adds a gauge to that of the same account.
func (p *pending) addQuota(q *rpc.Quota) {
	for i := range p.Quotas {
		if had := &p.Quotas[i]; had.ConnectionID == q.ConnectionID {
			had.Windows = store.MergeWindows(had.Windows, q.Windows, 0)
			had.Moved = had.Moved || q.Moved
			return
		}
	}
	p.Quotas = append(p.Quotas, *q)
}

// due reports whether the reports must be written in this turn.
func (b *turn) due() bool {
	b.o.buffers.mu.Lock()
	defer b.o.buffers.mu.Unlock()
	all, e := &b.o.buffers, b.o.buffers.entry(b.tx.ID)
	p := e.pending
	since := b.tx.Now - e.written
	return all.closed || all.size > maxBuffered || len(all.machines) > maxMachines || since >= flushEvery || since < 0 ||
		p.Size > maxBufferedEach || len(p.Usage) > maxBufferedKinds || len(p.Requests) > maxBufferedLines ||
		max(len(p.Cooldowns), len(p.Cleared), len(p.Errors), len(p.Refusals), len(p.Quotas)) > maxBufferedList
}

// apply puts reports into a turn, and returns the requests that were added to the list.
func apply(t *storage.Tx, p *pending) []store.Request {
	known := map[string]bool{}
	has := func(conn string) bool {
		ok, asked := known[conn]
		if !asked {
			ok = rpc.IsRowID(conn)
			if ok {
				_, ok = t.Get(storage.ConnectionPrefix + conn)
			}
			known[conn] = ok
		}
		return ok
	}
	// A cooldown and its end may be reported together.
	added := map[string]bool{} // connections with a new row
	for _, c := range p.Cooldowns {
		if has(c.ConnectionID) && t.AddCooldown(c) {
			added[c.ConnectionID] = true
		}
	}
	if len(added) > 0 {
		t.BoundCooldowns(added)
	}
	for _, c := range p.Cleared {
		if has(c.ConnectionID) {
			t.ClearCooldown(c)
		}
	}
	for _, e := range p.Errors {
		if has(e.ConnectionID) {
			t.SetError(e.ConnectionID, e.Text)
		}
	}
	for _, f := range p.Refusals {
		if has(f.ConnectionID) {
			t.AddRefusal(f)
		}
	}
	for _, q := range p.Quotas {
		if has(q.ConnectionID) {
			t.SetQuota(q)
		}
	}
	t.AddOutcomes(&p.Report, has)
	at := cmp.Or(p.At, t.Now)
	t.AddUsage(at, p.Usage)
	t.AddLabels(at, p.Labels)
	t.AddConnUse(at, p.Usage, has)
	listed := t.AddRequests(p.Requests, p.Unlisted, p.UnlistedFailed)
	shipLogs(t)
	return listed
}

// Buffered returns the machines with reports that are not written. The operation
// "flush" writes those of one.
func (o *Object) Buffered() (ids []string) {
	o.buffers.mu.Lock()
	defer o.buffers.mu.Unlock()
	for id, e := range o.buffers.machines {
		if e.pending != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// flush writes what is buffered.
func (o *Object) flush(r *storage.Call) (any, error) {
	r.Flush = true
	return struct{}{}, nil
}

// HandOver returns the buffered reports, for TakeOver of the program that replaces
// this one. Later reports are written at once.
func (o *Object) HandOver() []byte {
	o.buffers.mu.Lock()
	defer o.buffers.mu.Unlock()
	o.buffers.closed = true
	all := map[string]*pending{}
	for id, e := range o.buffers.machines {
		if e.pending != nil {
			all[id] = e.pending
		}
	}
	o.buffers.machines, o.buffers.size = nil, 0
	if len(all) == 0 {
		return nil
	}
	return storage.Encode(all)
}

// TakeOver buffers what HandOver has returned. The alarms of the machines are set.
func (o *Object) TakeOver(handed []byte) {
	var all map[string]*pending
	if json.Unmarshal(handed, &all) != nil {
		return
	}
	o.buffers.mu.Lock()
	defer o.buffers.mu.Unlock()
	for id, p := range all {
		if p == nil {
			continue
		}
		e := o.buffers.entry(id)
		o.buffers.size += p.Size
		if own := e.pending; own != nil { // reported before the program was handed anything
			p.add(&own.Report, own.Size, own.Observed, 2*maxBufferedLines)
			p.At = max(p.At, own.At)
		}
		e.pending = p
	}
}
