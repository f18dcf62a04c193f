package machine

import (
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// txNow is the time of the turns of newTx, the start of a UTC day.
const txNow = 20_000 * storage.Day

// newTx returns a turn of an empty object.
func newTx() *storage.Tx {
	return storage.Open(objects.NewStorage(), mid, time.UnixMilli(txNow), nil)
}

func TestHealthIsTheLastOutcome(t *testing.T) {
	const minute = storage.Minute
	for _, tt := range []struct {
		name   string
		had    storage.Health
		reason string
		at     int64
		want   storage.Health
	}{
		{"first success", storage.Health{}, "", txNow, storage.Health{At: txNow, SucceedAt: txNow}},
		{"failure", storage.Health{At: txNow - 2, SucceedAt: txNow - 2}, storage.HealthFailing, txNow - 2, storage.Health{Reason: storage.HealthFailing, Status: 503, At: txNow - 2, SucceedAt: txNow - 2}},
		{"no answer", storage.Health{At: txNow - 2}, storage.HealthUnreachable, txNow, storage.Health{Reason: storage.HealthUnreachable, At: txNow}},
		{"older outcome", storage.Health{At: txNow}, storage.HealthFailing, txNow - 1, storage.Health{At: txNow}},
		{"row of a later time", storage.Health{At: txNow + 1}, storage.HealthFailing, txNow - 1, storage.Health{Reason: storage.HealthFailing, Status: 503, At: txNow - 1}},
		{"time to come", storage.Health{At: txNow - 1}, storage.HealthFailing, txNow + 9, storage.Health{Reason: storage.HealthFailing, Status: 503, At: txNow}},
		{"success within a minute", storage.Health{At: txNow - minute + 1, SucceedAt: 1}, "", txNow, storage.Health{At: txNow - minute + 1, SucceedAt: 1}},
		{"success after a minute", storage.Health{At: txNow - minute, SucceedAt: 1}, "", txNow, storage.Health{At: txNow, SucceedAt: txNow}},
		{"success after a failure", storage.Health{Reason: storage.HealthFailing, Status: 500, At: txNow - 1}, "", txNow, storage.Health{At: txNow, SucceedAt: txNow}},
	} {
		tx := newTx()
		if tt.had != (storage.Health{}) {
			tx.Put(storage.HealthPrefix+"c", tt.had)
		}
		tx.SetHealth("c", storage.Outcome{Reason: tt.reason, Status: 503, At: tt.at})
		var got storage.Health
		tx.Load(storage.HealthPrefix+"c", &got)
		got.Since = 0 // TestHealthHasItsBeginning
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestCooldownRowIsOfTheLastFailure(t *testing.T) {
	cool := func(since, until int64, failures int) store.Cooldown {
		return store.Cooldown{ConnectionID: "c", Model: "m", Reason: store.RateLimited, Since: txNow + since, Until: txNow + until, Failures: failures}
	}
	skew := store.ClockSkew.Milliseconds()
	for _, tt := range []struct {
		name           string
		had, add, want store.Cooldown
	}{
		{"longer", cool(-9000, 5000, 3), cool(-5000, 6000, 1), cool(-5000, 6000, 3)},
		{"older and shorter", cool(-5000, 6000, 1), cool(-9000, 5000, 3), cool(-5000, 6000, 1)},
		{"older, the same end", cool(-5000, 6000, 1), cool(-9000, 6000, 3), cool(-5000, 6000, 1)},
		{"older and longer", cool(-5000, 5000, 1), cool(-9000, 6000, 3), cool(-5000, 6000, 3)},
		{"same time, shorter", cool(-5000, 6000, 1), cool(-5000, 5000, 2), cool(-5000, 5000, 2)},
		{"row from a clock that was set back", cool(skew+1, skew+9000, 7), cool(-5000, 6000, 1), cool(-5000, 6000, 1)},
	} {
		tx := newTx()
		tx.AddCooldown(tt.had)
		key := tx.List(storage.CooldownPrefix)[0].Key
		tx.Put(key, tt.had) // as it is, without its bounds
		if tx.AddCooldown(tt.add) {
			t.Errorf("%s: a second row", tt.name)
		}
		var got store.Cooldown
		if tx.Load(key, &got); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	for at, stays := range map[int64]bool{0: false, txNow - 5001: true, txNow - 5000: false, txNow: false} {
		tx := newTx()
		tx.AddCooldown(cool(-5000, 6000, 1))
		tx.ClearCooldown(rpc.Cleared{ConnectionID: "c", Model: "m", At: at})
		if got := len(tx.List(storage.CooldownPrefix)) == 1; got != stays {
			t.Errorf("cleared at %d: stays %v", at, got)
		}
	}
	if newTx().AddCooldown(cool(-5000, 0, 1)) {
		t.Error("a cooldown that has ended is stored")
	}
}

func TestInvisibleCharacters(t *testing.T) {
	for _, r := range []rune{0, 0x1f, 0x7f, 0x9f, 0xfffd, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x202e, 0x2060, 0x206f, 0xfeff, 0xfff9, 0xfffb, 0xe0000, 0xe007f} {
		if got, at := storage.Hidden("ab" + string(r) + "c"); got != r || at != 3 {
			t.Errorf("%U: got %U at %d", r, got, at)
		}
	}
	for _, r := range []rune{0x20, 0x7e, 0xa0, 0x61b, 0x61d, 0x200a, 0x200c, 0x200d, 0x2010, 0x2027, 0x202f, 0x205f, 0x2070, 0xfefe, 0xff00, 0xfff8, 0xfffc, 0xdffff, 0xe0080} {
		if !storage.IsPrintable("a" + string(r)) {
			t.Errorf("%U counts as invisible", r)
		}
	}
}
