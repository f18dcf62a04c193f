package storage_test

import (
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

const (
	second = int64(1000)
	minute = storage.Minute
	day    = storage.Day
	// noon is in the middle of a minute and of a UTC day.
	noon = 20_000*day + day/2 + minute/2
)

// at starts a turn at a time, Unix milliseconds.
func at(st storage.Storage, now int64) *storage.Tx {
	return storage.Open(st, sealed.MachineID, time.UnixMilli(now), nil)
}

// changed reports whether a turn has changed what replicas have.
func changed(t *storage.Tx) bool { return t.Meta.Observed != 0 }

func TestCountsEndWithTheirWindow(t *testing.T) {
	m, d := noon/minute, noon/day
	for _, tt := range []struct {
		name     string
		now      int64
		row      storage.CountRow
		inMinute int
		inDay    int
	}{
		{"same minute", noon, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 3, 5},
		{"next minute", noon + minute, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 0, 5},
		{"next day", noon + day, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 0, 0},
		{"clock one minute back", noon - minute, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 3, 5},
		{"clock two minutes back", noon - 2*minute, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 0, 5},
		{"clock one day back", noon - day, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 0, 5},
		{"clock two days back", noon - 2*day, storage.CountRow{Minute: m, InMinute: 3, Day: d, InDay: 5}, 0, 0},
	} {
		got := tt.row.At(tt.now)
		if got.InMinute != tt.inMinute || got.InDay != tt.inDay {
			t.Errorf("%s: %d in the minute and %d in the day, want %d and %d", tt.name, got.InMinute, got.InDay, tt.inMinute, tt.inDay)
		}
		if got.InMinute == 0 && got.Minute != tt.now/minute || got.InDay == 0 && got.Day != tt.now/day {
			t.Errorf("%s: a window begins at %d, %d", tt.name, got.Minute, got.Day)
		}
	}
}

func TestKeyIsLimitedUntilItsWindowEnds(t *testing.T) {
	nextMinute, nextDay := (noon/minute+1)*minute, (noon/day+1)*day
	for _, tt := range []struct {
		name     string
		rpm      int
		daily    int
		requests int
		until    int64
	}{
		{"no limit", 0, 0, 1_000_000, 0},
		{"below both", 4, 4, 3, 0},
		{"at the limit of a minute", 3, 0, 3, nextMinute},
		{"above the limit of a minute", 3, 9, 4, nextMinute},
		{"at the limit of a day", 0, 3, 3, nextDay},
		{"at both", 3, 3, 3, nextDay},
		{"no requests", 1, 1, 0, 0},
		{"a negative number", 1, 1, -1, 0},
		{"an absurd number", 1, 1, 1_000_001, 0},
	} {
		tx := at(objects.NewStorage(), noon)
		tx.Put(storage.KeyPrefix+"k1", storage.Key{Key: store.Key{ID: "k1", RPM: tt.rpm, DailyMax: tt.daily}})
		limited, reached := tx.CountRequests([]rpc.KeyCount{{KeyID: "k1", Requests: tt.requests}})
		var row storage.Key
		tx.Load(storage.KeyPrefix+"k1", &row)
		if until := tx.LimitedUntil(&row); until != tt.until || tx.Meta.Generation != 0 {
			t.Errorf("%s: until %d, generation %d", tt.name, until, tx.Meta.Generation)
		}
		if tt.until == 0 {
			var count storage.CountRow
			counted := tx.Load(storage.CountPrefix+"k1", &count)
			if valid := tt.requests > 0 && tt.requests <= 1_000_000; counted != valid || valid && count.InDay != tt.requests {
				t.Errorf("%s: counted %+v, %v", tt.name, count, counted)
			}
			if len(limited) != 0 || reached {
				t.Errorf("%s: limited %v, reached %v", tt.name, limited, reached)
			}
			continue
		}
		if len(limited) != 1 || limited[0] != (store.LimitedKey{KeyID: "k1", Until: tt.until}) || !reached {
			t.Errorf("%s: limited %v, reached %v; want until %d", tt.name, limited, reached, tt.until)
		}
		if _, again := tx.CountRequests([]rpc.KeyCount{{KeyID: "k1", Requests: 1}}); again {
			t.Errorf("%s: reached again", tt.name)
		}
	}
}

func TestCountsAddUpOverReports(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Put(storage.KeyPrefix+"k1", storage.Key{Key: store.Key{ID: "k1", RPM: 5, DailyMax: 8}})
	counted := func(now int64, n int) []store.LimitedKey {
		t.Helper()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		tx = at(st, now)
		limited, _ := tx.CountRequests([]rpc.KeyCount{{KeyID: "unknown", Requests: 9}, {KeyID: "no id!", Requests: 9}, {KeyID: "k1", Requests: n}})
		return limited
	}
	if got := counted(noon, 4); len(got) != 0 {
		t.Errorf("4 of 5: limited %v", got)
	}
	if got := counted(noon, 1); len(got) != 1 || got[0].Until != (noon/minute+1)*minute {
		t.Errorf("5 of 5: limited %v", got)
	}
	if got := counted(noon+minute, 2); len(got) != 0 {
		t.Errorf("7 of 8 in the day: limited %v", got)
	}
	if got := counted(noon+minute, 1); len(got) != 1 || got[0].Until != (noon/day+1)*day {
		t.Errorf("8 of 8 in the day: limited %v", got)
	}
	if _, ok := tx.Get(storage.CountPrefix + "unknown"); ok {
		t.Error("requests of an unknown key are counted")
	}
}
