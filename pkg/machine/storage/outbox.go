package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// Types of deliveries.
const (
	Notification = "notification" // the body is a deliver.Message
	Telemetry    = "telemetry"
	Lines        = "lines"  // of a log
	Bodies       = "bodies" // of a captured request, whose record the body is
)

// Delivery is an item of the outbox. Its body is a row of its own.
type Delivery struct {
	ID            string `json:"id"` // the same in every try
	DestinationID string `json:"-"`  // of a destination, or OfBudget
	Type          string `json:"type"`
	Title         string `json:"title,omitempty"` // to show, without a secret
	Body          []byte `json:"-"`
	Size          int    `json:"size"`              // of the body, in bytes
	Entries       int64  `json:"entries,omitempty"` // spans, points or lines in the body; 0 for one
	At            int64  `json:"at"`
	From          int64  `json:"from"`  // the next try
	Until         int64  `json:"until"` // after it there is no try; 0 for a day after At
	Tries         int    `json:"tries,omitempty"`
	Error         string `json:"error,omitempty"` // of the last try
	Held          bool   `json:"held,omitempty"`  // until From, so that others are added to it
}

// entries returns how many entries the item counts as.
func (d *Delivery) entries() int64 { return max(d.Entries, 1) }

// longest returns the longest time until the next try. If it is later, the clock went back.
func (d *Delivery) longest() int64 {
	if d.Held {
		return Day
	}
	return maxWait
}

// Outbox is what waits for one destination, and what deliveries have shown of it.
type Outbox struct {
	Items []Delivery `json:"items,omitempty"`
	Dead  []Delivery `json:"dead,omitempty"`  // the latest that were given up, without bodies
	From  int64      `json:"from,omitempty"`  // before it nothing is sent
	PutAt int64      `json:"putAt,omitempty"` // when the row was written; 0 by an earlier version
	Fails int        `json:"fails,omitempty"` // in a row

	SentAt     int64  `json:"sentAt,omitempty"` // of the last success
	ErrorAt    int64  `json:"errorAt,omitempty"`
	Error      string `json:"error,omitempty"`    // of the last failure
	Refused    int    `json:"refused,omitempty"`  // permanent refusals in a row
	Dropped    int64  `json:"dropped,omitempty"`  // entries that were not delivered, dead ones included
	Disabled   string `json:"disabled,omitempty"` // why nothing is sent any more
	DisabledAt int64  `json:"disabledAt,omitempty"`
}

// Bounds of the outbox of a destination. The oldest items of a type are dropped, and counted.
const (
	maxDead     = 20
	maxRefusals = 5 // in a row; then the destination is disabled
	maxTitle    = 200
)

// bounds are those of the items of a type.
var bounds = map[string]struct{ items, bytes int }{
	Notification: {100, 256 << 10},
	Telemetry:    {16, 4 << 20},
	Lines:        {512, 16 << 20},
	Bodies:       {256, 1 << 20},
}

// OfEnvironment is the destination that the operator has set for all machines. It is not
// stored.
const OfEnvironment = "environment"

// isStored reports whether a destination is one that its owner can enable again.
func isStored(destinationID string) bool {
	return destinationID != OfEnvironment && !strings.HasPrefix(destinationID, BudgetPrefix)
}

// OfBudget returns the name of the webhook of a budget, in the place of the id of a
// destination.
func OfBudget(budgetID string) string { return BudgetPrefix + budgetID }

// Outbox returns the outbox of a destination.
func (t *Tx) Outbox(destinationID string) (o Outbox) {
	t.Load(OutboxPrefix+destinationID, &o)
	o.rewind(t.Now)
	return o
}

// rewind moves the next tries if the clock went back, so that none waits for longer than
// before. Items that are held until a time of day are not moved.
func (o *Outbox) rewind(now int64) {
	back := o.PutAt - now
	if o.PutAt == 0 || back <= 0 {
		return
	}
	o.From, o.PutAt = max(o.From-back, 0), now
	for i := range o.Items {
		if item := &o.Items[i]; !item.Held {
			item.From -= back
		}
	}
}

// Lose counts entries for a destination that were never stored.
func (t *Tx) Lose(destinationID string, entries int64) {
	o := t.Outbox(destinationID)
	o.Dropped += entries
	t.putOutbox(destinationID, &o)
}

func (t *Tx) putOutbox(destinationID string, o *Outbox) {
	o.PutAt = t.Now
	t.Put(OutboxPrefix+destinationID, o)
}

func itemKey(destinationID, id string) string { return itemPrefix + destinationID + ":" + id }

// DropOutbox removes what waits for a destination, and its state.
func (t *Tx) DropOutbox(destinationID string) {
	for _, item := range t.Outbox(destinationID).Items {
		t.Del(itemKey(destinationID, item.ID))
	}
	t.Del(OutboxPrefix + destinationID)
	t.Del(TotalsPrefix + destinationID)
}

// NextDeliveryID returns an id for a delivery.
func (t *Tx) NextDeliveryID() string { return fmt.Sprintf("%s-%d", t.ID, t.nextSeq()) }

// Enqueue stores a delivery, which the alarm sends. Without an id it gets one. For a
// disabled destination it only counts.
func (t *Tx) Enqueue(d Delivery) {
	o := t.Outbox(d.DestinationID)
	d.ID = cmp.Or(d.ID, t.NextDeliveryID())
	d.At = cmp.Or(d.At, t.Now)
	d.From, d.Until = max(d.From, d.At), cmp.Or(d.Until, d.At+Day)
	d.Size, d.Title = len(d.Body), apierr.Shorten(d.Title, maxTitle)
	bound := bounds[d.Type]
	if o.Disabled != "" || d.Size > min(bound.bytes, maxValueBytes) {
		o.Dropped += d.entries()
		t.putOutbox(d.DestinationID, &o)
		return
	}
	o.Items = append(o.Items, d)
	t.Set(itemKey(d.DestinationID, d.ID), d.Body)
	n, size := 0, 0
	for i := range o.Items {
		if o.Items[i].Type == d.Type {
			n, size = n+1, size+o.Items[i].Size
		}
	}
	for i := 0; n > bound.items || size > bound.bytes; {
		if o.Items[i].Type != d.Type {
			i++
			continue
		}
		n, size = n-1, size-o.Items[i].Size
		t.drop(d.DestinationID, &o, i, "too much waits")
	}
	t.putOutbox(d.DestinationID, &o)
	t.planAt(max(d.From, o.From))
}

// Held returns the item of a destination to which others are added, with its body.
func (t *Tx) Held(destinationID string) (d Delivery, ok bool) {
	for _, item := range t.Outbox(destinationID).Items {
		if item.Held && item.Tries == 0 && item.From > t.Now {
			item.DestinationID = destinationID
			return item, t.LoadBody(&item)
		}
	}
	return d, false
}

// SetBody changes the body and the title of an item that was not tried.
func (t *Tx) SetBody(d *Delivery) {
	o := t.Outbox(d.DestinationID)
	for i := range o.Items {
		if item := &o.Items[i]; item.ID == d.ID && len(d.Body) <= maxValueBytes {
			item.Size, item.Title = len(d.Body), apierr.Shorten(d.Title, maxTitle)
			t.Set(itemKey(d.DestinationID, d.ID), d.Body)
			t.putOutbox(d.DestinationID, &o)
		}
	}
}

// drop removes an item that is not delivered.
func (t *Tx) drop(destinationID string, o *Outbox, i int, why string) {
	item := o.Items[i]
	item.Error = cmp.Or(why, item.Error)
	o.Items = slices.Delete(o.Items, i, i+1)
	o.Dropped += item.entries()
	o.Dead = append(o.Dead, item)
	o.Dead = o.Dead[max(0, len(o.Dead)-maxDead):]
	t.Del(itemKey(destinationID, item.ID))
}

// DueItems returns the next item of each destination that is to be sent now, those of
// destinations that have not failed first. Items whose time is over are given up.
func (t *Tx) DueItems() (due []Delivery) {
	fails := map[string]int{}
	t.outboxes(func(id string, o *Outbox) {
		had := len(o.Items)
		for i := len(o.Items) - 1; i >= 0; i-- {
			if o.Items[i].Until <= t.Now {
				t.drop(id, o, i, "")
			}
		}
		if len(o.Items) < had {
			t.putOutbox(id, o)
		}
		next := -1
		for i := range o.Items {
			item := &o.Items[i]
			late := max(item.From, o.From)
			if (late <= t.Now || late > t.Now+item.longest()) && (next < 0 || item.Tries < o.Items[next].Tries) {
				next = i
			}
		}
		if next < 0 || o.Disabled != "" {
			return
		}
		item := o.Items[next]
		item.DestinationID = id
		due, fails[id] = append(due, item), o.Fails
	})
	slices.SortStableFunc(due, func(a, b Delivery) int {
		return cmp.Compare(fails[a.DestinationID], fails[b.DestinationID])
	})
	return due
}

// Waiting counts the items of a type that wait, and those of them that were tried.
func (t *Tx) Waiting(typ string) (waiting, failing int) {
	t.outboxes(func(_ string, o *Outbox) {
		for i := range o.Items {
			if o.Items[i].Type == typ {
				waiting++
				failing += min(o.Items[i].Tries, 1)
			}
		}
	})
	return waiting, failing
}

// LoadBody reads the body of an item.
func (t *Tx) LoadBody(d *Delivery) (found bool) {
	d.Body, found = t.Get(itemKey(d.DestinationID, d.ID))
	return found
}

func (t *Tx) outboxes(each func(id string, o *Outbox)) {
	for _, row := range t.List(OutboxPrefix) {
		var o Outbox
		if decode(row.Value, &o) == nil {
			o.rewind(t.Now)
			each(strings.TrimPrefix(row.Key, OutboxPrefix), &o)
		}
	}
}

// Verdict is what an answer means for a delivery.
type Verdict int

// The verdicts.
const (
	Delivered Verdict = iota
	Again             // later
	Refused           // later, and disable the destination if it lasts
	Dropped           // the item is given up
	Disable           // the destination takes no more
)

// Result is the result of a try.
type Result struct {
	Verdict Verdict
	Why     string // to show, without a secret
	After   int64  // the least wait until the next try, milliseconds; 0 for that of Again
	Lost    int64  // entries of a delivered item that were not taken
}

// backoff are the waits after failed tries.
var backoff = [...]int64{5 * second, 30 * second, 2 * Minute, 10 * Minute, 30 * Minute, Hour}

const (
	second = int64(1000)
	// maxWait is the longest wait for the next try, whatever an answer asks for.
	maxWait = 6 * Hour
	// maxPause is how long a destination pauses after failures, if its answer does not ask
	// for more: another item may be taken.
	maxPause = 10 * Minute
)

// wait returns how long an item waits after its failed tries.
func wait(tries int) int64 { return backoff[min(max(tries, 1), len(backoff))-1] }

// Tried records a try of an item, which may be gone by now.
func (t *Tx) Tried(d *Delivery, r Result) {
	o := t.Outbox(d.DestinationID)
	i := slices.IndexFunc(o.Items, func(item Delivery) bool { return item.ID == d.ID })
	if i < 0 {
		return
	}
	defer func() {
		t.putOutbox(d.DestinationID, &o)
		t.PlanDeliveries()
	}()
	if r.Verdict == Delivered {
		t.Del(itemKey(d.DestinationID, d.ID))
		o.Items = slices.Delete(o.Items, i, i+1)
		t.succeeded(&o, r)
		return
	}
	item := &o.Items[i]
	item.Tries, item.Error = item.Tries+1, r.Why
	o.Error, o.ErrorAt = r.Why, t.Now
	if r.Verdict == Refused {
		o.Refused++
	}
	if r.Verdict == Disable || o.Refused >= maxRefusals && isStored(d.DestinationID) {
		t.disable(d.DestinationID, &o)
		return
	}
	if r.Verdict == Dropped {
		t.drop(d.DestinationID, &o, i, r.Why)
		return
	}
	o.Fails++
	after := min(r.After, maxWait)
	item.From = t.Now + max(wait(item.Tries), after)
	o.From = t.Now + max(min(wait(o.Fails), maxPause), after)
	if item.From >= item.Until {
		t.drop(d.DestinationID, &o, i, r.Why)
	}
}

func (t *Tx) succeeded(o *Outbox, r Result) {
	if o.Fails > 0 { // what has waited is due
		for i := range o.Items {
			if o.Items[i].Tries > 0 {
				o.Items[i].From = t.Now
			}
		}
	}
	o.SentAt, o.Fails, o.Refused, o.From = t.Now, 0, 0, 0
	if o.Dropped += r.Lost; r.Lost > 0 {
		o.Error, o.ErrorAt = r.Why, t.Now
	}
}

// disable ends the deliveries to a destination. Items that wait are kept until it is enabled or
// their time is over. The webhook of a budget and the operator's destination have
// no such state: what waits is dropped, and the next item is tried again.
func (t *Tx) disable(id string, o *Outbox) {
	o.Fails, o.Refused, o.From = 0, 0, 0
	if isStored(id) {
		o.Disabled, o.DisabledAt = o.Error, t.Now
		return
	}
	for len(o.Items) > 0 {
		t.drop(id, o, 0, o.Error)
	}
}

// enable makes what waits due.
func (t *Tx) enable(o *Outbox) {
	o.Disabled, o.DisabledAt, o.Fails, o.Refused, o.From = "", 0, 0, 0, 0
	for i := range o.Items {
		o.Items[i].From = t.Now
	}
}

// Tested records the result of a test, which enables a destination that takes it.
func (t *Tx) Tested(destinationID string, r Result) {
	o := t.Outbox(destinationID)
	if r.Verdict == Delivered {
		if o.Disabled != "" {
			t.enable(&o)
		}
		t.succeeded(&o, r)
	} else {
		o.Error, o.ErrorAt = r.Why, t.Now
	}
	t.putOutbox(destinationID, &o)
	t.PlanDeliveries()
}

// Hold keeps what waits for a paused destination until Enable.
func (t *Tx) Hold(destinationID string) {
	o := t.Outbox(destinationID)
	o.From = t.Now + maxWait
	t.putOutbox(destinationID, &o)
	t.PlanDeliveries()
}

// Enable lets a destination try again: its owner has changed it.
func (t *Tx) Enable(destinationID string) {
	o := t.Outbox(destinationID)
	if o.Disabled == "" && o.Fails == 0 && o.From == 0 {
		return
	}
	t.enable(&o)
	t.putOutbox(destinationID, &o)
	t.PlanDeliveries()
}

func (t *Tx) planAt(at int64) {
	if t.Meta.SendAt == 0 || at < t.Meta.SendAt {
		t.Meta.SendAt = at
	}
}

// PlanDeliveries sets Meta.SendAt to the time of the next try, or to 0 without one.
func (t *Tx) PlanDeliveries() {
	t.Meta.SendAt = 0
	t.outboxes(func(_ string, o *Outbox) {
		for i := range o.Items {
			at := max(o.Items[i].From, o.From)
			if o.Disabled != "" {
				at = o.Items[i].Until
			}
			t.planAt(min(at, o.Items[i].Until, t.Now+maxWait))
		}
	})
}

// oldAlert is a row of an earlier version: an alert of a budget that waits for its webhook.
type oldAlert struct {
	ID      string       `json:"id"`
	Budget  store.Budget `json:"budget"`
	Percent int          `json:"percent"`
	Spent   int64        `json:"spent"`
	Start   int64        `json:"start"`
	End     int64        `json:"end,omitempty"`
	At      int64        `json:"at"`
	Tries   int          `json:"tries,omitempty"`
}

// Reached states that a budget has reached a share of its limit. Amounts are those of the
// budget's unit; dollars are counted in nano-dollars.
type Reached struct {
	Budget     store.Budget
	Percent    int
	Spent      int64
	Start, End int64 // of the window
	At         int64
}

// OldAlerts moves the alerts of an earlier version to the outbox. body returns the body of
// one and its title.
func (t *Tx) OldAlerts(body func(r *Reached) (body []byte, title string)) {
	for _, row := range t.List(oldAlertPrefix) {
		t.Del(row.Key)
		var a oldAlert
		if decode(row.Value, &a) != nil || a.ID == "" {
			continue
		}
		d := Delivery{ID: a.ID, DestinationID: OfBudget(a.Budget.ID), Type: Notification, At: a.At, Tries: a.Tries}
		d.Body, d.Title = body(&Reached{a.Budget, a.Percent, a.Spent, a.Start, a.End, a.At})
		t.Enqueue(d)
	}
}
