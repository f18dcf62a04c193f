package storage_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
)

func queued(dest, body string) storage.Delivery {
	return storage.Delivery{DestinationID: dest, Type: storage.Notification, Body: []byte(body), Title: body}
}

// next returns the ids of the destinations with an item that is due, and its body.
func next(tx *storage.Tx) string {
	var out []string
	for _, d := range tx.DueItems() {
		tx.LoadBody(&d)
		out = append(out, d.DestinationID+"="+string(d.Body))
	}
	return strings.Join(out, " ")
}

func first(t *testing.T, tx *storage.Tx) storage.Delivery {
	t.Helper()
	due := tx.DueItems()
	if len(due) == 0 {
		t.Fatal("no item is due")
	}
	return due[0]
}

func TestOutboxKeepsOrderAndFailuresApart(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	for _, d := range []storage.Delivery{queued("a", "1"), queued("b", "2"), queued("a", "3")} {
		tx.Enqueue(d)
	}
	if tx.Meta.SendAt != noon {
		t.Errorf("the next try is at %d", tx.Meta.SendAt)
	}
	commit(t, st, tx)
	if tx = at(st, noon); next(tx) != "a=1 b=2" {
		t.Fatalf("due: %s", next(tx))
	}
	d := first(t, tx)
	tx.Tried(&d, storage.Result{Verdict: storage.Again, Why: "status 500"})
	commit(t, st, tx)
	if tx = at(st, noon); next(tx) != "b=2" {
		t.Errorf("after a failure of a: %s", next(tx))
	}
	if tx = at(st, noon+5000); next(tx) != "b=2 a=3" {
		t.Errorf("5 s later: %s, want another item of a, after b", next(tx))
	}
	d = tx.DueItems()[1]
	tx.Tried(&d, storage.Result{})
	if next(tx) != "a=1 b=2" {
		t.Errorf("after a success: %s", next(tx))
	}
	if o := tx.Outbox("a"); o.SentAt != noon+5000 || o.Fails != 0 || o.Error != "status 500" || o.Dropped != 0 {
		t.Errorf("the state is %+v", o)
	}
}

func TestOutboxJudgesRefusals(t *testing.T) {
	st := objects.NewStorage()
	for _, tt := range []struct {
		name     string
		result   storage.Result
		tries    int
		disabled bool
		dropped  int64
		waits    int64 // until the next try
	}{
		{"gone", storage.Result{Verdict: storage.Disable, Why: "x"}, 1, true, 0, 6 * 3600_000},
		{"refused once", storage.Result{Verdict: storage.Refused, Why: "x"}, 1, false, 0, 5000},
		{"refused again", storage.Result{Verdict: storage.Refused, Why: "x"}, 4, false, 0, 600_000},
		{"refused often", storage.Result{Verdict: storage.Refused, Why: "x"}, 5, true, 0, 6 * 3600_000},
		{"unusable item", storage.Result{Verdict: storage.Dropped, Why: "x"}, 1, false, 1, 0},
		{"slow down", storage.Result{Verdict: storage.Again, After: 90_000, Why: "x"}, 1, false, 0, 90_000},
		{"slow down for days", storage.Result{Verdict: storage.Again, After: 1e12, Why: "x"}, 1, false, 0, 6 * 3600_000},
		{"partial success", storage.Result{Lost: 3, Why: "x"}, 1, false, 3, 0},
	} {
		tx := at(st, noon)
		tx.DropOutbox("a")
		tx.Enqueue(queued("a", "1"))
		d := first(t, tx)
		for range tt.tries {
			tx.Tried(&d, tt.result)
		}
		o := tx.Outbox("a")
		if (o.Disabled != "") != tt.disabled || o.Dropped != tt.dropped || o.Error != "x" || len(o.Dead) != min(int(tt.dropped), 1) && tt.result.Lost == 0 {
			t.Errorf("%s: %+v", tt.name, o)
		}
		if want := noon + tt.waits; tt.waits > 0 && tx.Meta.SendAt != want || tt.waits == 0 && tx.Meta.SendAt != 0 {
			t.Errorf("%s: the next try is in %d ms, want %d", tt.name, tx.Meta.SendAt-noon, tt.waits)
		}
		if tt.disabled {
			tx.Enqueue(queued("a", "2"))
			if o = tx.Outbox("a"); len(o.Items) != 1 || o.Dropped != 1 || next(tx) != "" {
				t.Errorf("%s: a disabled destination has %+v", tt.name, o)
			}
			if tx.Enable("a"); tx.Outbox("a").Disabled != "" || next(tx) != "a=1" {
				t.Errorf("%s: after it is enabled %q is next, %+v", tt.name, next(tx), tx.Outbox("a"))
			}
			tx.Tried(&d, storage.Result{Verdict: storage.Disable, Why: "x"})
			if tx.Tested("a", storage.Result{}); tx.Outbox("a").Disabled != "" || next(tx) != "a=1" {
				t.Errorf("%s: after a test %q is next, %+v", tt.name, next(tx), tx.Outbox("a"))
			}
			tx.Tried(&d, storage.Result{Verdict: storage.Disable, Why: "x"})
			if due := at(st, noon).DueItems(); len(due) != 0 {
				t.Errorf("%s: %+v", tt.name, due)
			}
		}
	}
}

// An item that a destination cannot use says nothing of the next ones.
func TestUnusableItemsDoNotDisableADestination(t *testing.T) {
	tx := at(objects.NewStorage(), noon)
	for i := range 6 {
		tx.Enqueue(queued("a", fmt.Sprint(i)))
		d := first(t, tx)
		tx.Tried(&d, storage.Result{Verdict: storage.Dropped, Why: "status 413"})
	}
	tx.Enqueue(queued("a", "next"))
	if o := tx.Outbox("a"); o.Disabled != "" || o.Dropped != 6 || len(o.Dead) != 6 || len(o.Items) != 1 {
		t.Errorf("%+v", o)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	for i := range 130 {
		tx.Enqueue(queued("a", fmt.Sprint(i)))
	}
	tx.Enqueue(queued("a", strings.Repeat("x", 300<<10)))
	big := storage.Delivery{DestinationID: "b", Type: storage.Telemetry, Body: make([]byte, 1<<20), Entries: 500}
	for range 6 {
		tx.Enqueue(big)
	}
	tx.Enqueue(storage.Delivery{DestinationID: "b", Type: "unknown", Body: []byte("x")})
	commit(t, st, tx)
	tx = at(st, noon)
	if o := tx.Outbox("a"); len(o.Items) != 100 || o.Dropped != 31 || len(o.Dead) != 20 || o.Dead[19].Title != "29" {
		t.Errorf("%d items, %d dropped, %d dead", len(o.Items), o.Dropped, len(o.Dead))
	}
	if o := tx.Outbox("b"); len(o.Items) != 4 || o.Dropped != 1001 {
		t.Errorf("telemetry: %d items, %d dropped", len(o.Items), o.Dropped)
	}
	if rows := tx.List("item:"); len(rows) != 104 {
		t.Errorf("%d bodies are stored, want 104", len(rows))
	}
	tx.DropOutbox("a")
	tx.DropOutbox("b")
	if rows := append(tx.List("item:"), tx.List("outbox:")...); len(rows) != 0 {
		t.Errorf("%d rows are left", len(rows))
	}
}

// Items of one type never displace those of another, which the same destination gets.
func TestTypesOfItemsAreBoundedApart(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	for i := range 300 {
		if i%100 == 0 {
			tx.Enqueue(storage.Delivery{DestinationID: "a", Type: storage.Lines, Body: []byte("line")})
		}
		tx.Enqueue(storage.Delivery{DestinationID: "a", Type: storage.Bodies, Body: []byte("record"), Title: fmt.Sprint(i)})
	}
	commit(t, st, tx)
	count := map[string]int{}
	o := at(st, noon).Outbox("a")
	for _, d := range o.Items {
		count[d.Type]++
	}
	if count[storage.Lines] != 3 || count[storage.Bodies] != 256 || o.Dropped != 44 || o.Dead[19].Title != "43" {
		t.Errorf("%v wait, %d were dropped, the last one %q", count, o.Dropped, o.Dead[len(o.Dead)-1].Title)
	}
}

// The clock may jump: an item is sent at the latest when its wait has passed by the new
// time, and one that is over is not sent.
func TestOutboxSurvivesClocks(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Enqueue(queued("a", "1"))
	commit(t, st, tx)
	if tx = at(st, noon-9*day); next(tx) != "a=1" {
		t.Errorf("nine days before: %q", next(tx))
	}
	tx = at(st, noon)
	d := first(t, tx)
	tx.Tried(&d, storage.Result{Verdict: storage.Again, After: 3 * 3600_000})
	commit(t, st, tx)
	for _, ago := range []int64{1, 3600_000, 5 * 3600_000} {
		if tx = at(st, noon-ago); next(tx) != "" {
			t.Errorf("%d ms before: %q", ago, next(tx))
		}
		tx.PlanDeliveries()
		if got := tx.Meta.SendAt - (noon - ago); got != 3*3600_000 {
			t.Errorf("%d ms before, the next try is in %d ms, want three hours", ago, got)
		}
	}
	tx = at(st, noon+day)
	if next(tx) != "" || tx.Outbox("a").Dropped != 1 {
		t.Errorf("a day later: %q, %+v", next(tx), tx.Outbox("a"))
	}
}

// A held item may change until it is tried; no other changes with it, and a body that is
// too large to be stored changes nothing.
func TestBodyOfAHeldItemIsReplaced(t *testing.T) {
	const most = 1 << 20
	tx := at(objects.NewStorage(), noon)
	for _, body := range []string{"1", "2", "3"} {
		tx.Enqueue(queued("a", body))
	}
	d := tx.Outbox("a").Items[1]
	d.DestinationID, d.Title = "a", "new"
	for _, size := range []int{5, most, most + 1} {
		d.Body = []byte(strings.Repeat("x", size))
		tx.SetBody(&d)
		var got []string
		for _, item := range tx.Outbox("a").Items {
			item.DestinationID = "a"
			tx.LoadBody(&item)
			got = append(got, fmt.Sprintf("%s:%d:%d", item.Title, item.Size, len(item.Body)))
		}
		if want := fmt.Sprintf("1:1:1 new:%d:%[1]d 3:1:1", min(size, most)); strings.Join(got, " ") != want {
			t.Errorf("%d bytes: got %q, want %q", size, got, want)
		}
	}
}
