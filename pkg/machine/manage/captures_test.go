package manage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pkg/machine/storage"
)

// capturing returns a world whose machine stores the bodies of every call.
func capturing(t *testing.T) *world {
	w := newWorld(t)
	w.Create()
	w.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	return w
}

// capture sends the sealed bodies of a call and reports whether they were stored.
func (w *world) capture(id, keyID, sealed string) bool {
	w.Helper()
	return w.Want(200, "capture.put", fmt.Sprintf(`{"id":%q,"keyId":%q}`, id, keyID)+"\n"+sealed).Get("stored").Bool()
}

// rowsUnder returns the keys of the stored rows under a prefix.
func (w *world) rowsUnder(prefix string) (keys []string) {
	st := w.Loc.Storage(mid)
	st.Flush()
	for _, r := range st.Listed(prefix) {
		keys = append(keys, r.Key)
	}
	return keys
}

func TestOldestCapturesAreDropped(t *testing.T) {
	t.Run("by their number", func(t *testing.T) {
		w := capturing(t)
		const more = 3
		for i := range storage.MaxCaptures + more {
			w.capture(fmt.Sprintf("req_%04d", i), "", "v1.sealed")
		}
		rows := w.rowsUnder(storage.CapturePrefix)
		if len(rows) != storage.MaxCaptures || rows[0] != fmt.Sprintf("capture:req_%04d", more) {
			t.Errorf("%d rows, from %s", len(rows), rows[0])
		}
		list := w.OK("GET", "/api/captures", "")
		if got := list.Get("data.0.id").Str; len(list.Get("data").Array()) != storage.MaxCaptures || got != fmt.Sprintf("req_%04d", storage.MaxCaptures+more-1) {
			t.Errorf("the list has %s first", got)
		}
	})
	t.Run("by their size", func(t *testing.T) {
		w := capturing(t)
		sealed := strings.Repeat("s", 700<<10)
		const calls = 100
		for i := range calls {
			w.capture(fmt.Sprintf("req_%04d", i), "", sealed)
		}
		rows := w.rowsUnder(storage.CapturePrefix)
		list := w.OK("GET", "/api/captures", "")
		if most := storage.MaxCapturesBytes / len(sealed); len(rows) != most || rows[0] != fmt.Sprintf("capture:req_%04d", calls-most) ||
			list.Get("bytes").Int() != int64(most*len(sealed)) || list.Get("maxBytes").Int() != storage.MaxCapturesBytes {
			t.Errorf("%d rows, from %s; %s bytes are listed", len(rows), rows[0], list.Get("bytes"))
		}
	})
}

func TestCaptureThatArrivesTwiceIsOneRow(t *testing.T) {
	w := capturing(t)
	for range 2 {
		w.capture("req_1", "", "v1.sealed")
	}
	if n := len(w.OK("GET", "/api/captures", "").Get("data").Array()); n != 1 || len(w.rowsUnder(storage.CapturePrefix)) != 1 {
		t.Errorf("%d captures", n)
	}
}

func TestObjectStoresWhatTheSettingsAskFor(t *testing.T) {
	w := capturing(t)
	key := w.newKey(`{"capturePercent":0}`).Get("id").Str
	for _, tt := range []struct {
		name, settings, own, key string
		want                     bool
	}{
		{"on", `{}`, "", "", true},
		{"off for the key", `{}`, "", key, false},
		{"on for the key", `{"capturePercent":0}`, `{"capturePercent":5}`, key, true},
		{"off", `{}`, "", "", false},
		{"an unknown key", `{"capturePercent":100}`, "", "none", false},
		{"no key's id", `{}`, "", "../x", false},
	} {
		w.OK("PATCH", "/api/settings", tt.settings)
		if tt.own != "" {
			w.OK("PUT", "/api/keys/"+key, tt.own)
		}
		if got := w.capture("req_1", tt.key, "v1.sealed"); got != tt.want {
			t.Errorf("%s: stored is %t, want %t", tt.name, got, tt.want)
		}
	}
	for _, body := range []string{"", "{}", "{}\n", `{"id":"req_1"}`, `{"id":"req_1"}` + "\n", `{"id":"a:b"}` + "\nv1.x", "[]\nv1.x"} {
		w.Want(400, "capture.put", body)
	}
	w.Want(413, "capture.put", `{"id":"req_1"}`+"\n"+strings.Repeat("s", 1<<20+1))
}

// Every capture has the time of the settings when it was stored.
func TestCapturesExpire(t *testing.T) {
	w := capturing(t)
	w.capture("req_day", "", "v1.sealed")
	w.OK("PATCH", "/api/settings", `{"captureHours":2}`)
	w.capture("req_hours", "", "v1.sealed")
	key := w.newKey(`{"captureHours":168}`).Get("id").Str
	w.capture("req_week", key, "v1.sealed")
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{time.Hour, "[capture:req_day capture:req_hours capture:req_week]"}, {2 * time.Hour, "[capture:req_day capture:req_week]"}, {23 * time.Hour, "[capture:req_week]"}, {160 * time.Hour, "[]"}} {
		w.Clock.Add(tt.after)
		w.Loc.Alarms(w.Ctx)
		if got := fmt.Sprint(w.rowsUnder(storage.CapturePrefix)); got != tt.want {
			t.Errorf("after %s more: got %s, want %s", tt.after, got, tt.want)
		}
	}
	if rows := w.rowsUnder(storage.CapturesRow); len(rows) != 0 {
		t.Errorf("%v is left", rows)
	}
}

// A machine without captures reads no row for them.
func TestMachineWithoutCapturesReadsNoRow(t *testing.T) {
	pruned := func(w *world) int {
		w.Clock.Add(61 * time.Minute)
		st := w.Loc.Storage(mid)
		st.Flush()
		before := st.Read
		w.Loc.Alarms(w.Ctx)
		return st.Read - before
	}
	w := newWorld(t)
	w.Create()
	plain := pruned(w)
	w.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	pruned(w)
	if got := pruned(w); got > plain {
		t.Errorf("%d rows are read in an hour, %d without the setting", got, plain)
	}
}

func TestCaptureWritesTwoRows(t *testing.T) {
	w := capturing(t)
	w.capture("req_0", "", "v1.sealed")
	st := w.Loc.Storage(mid)
	st.Flush()
	before := st.Written
	w.capture("req_1", "", "v1.sealed")
	st.Flush()
	if n := st.Written - before; n != 2 {
		t.Errorf("%d rows are written", n)
	}
}

func TestDeletedMachineLeavesNoCapture(t *testing.T) {
	w := capturing(t)
	for i := range 300 {
		w.capture(fmt.Sprintf("req_%d", i), "", strings.Repeat("s", 10<<10))
	}
	w.Want(204, "delete", `{}`)
	if rows := w.rowsUnder("capture"); len(rows) != 0 {
		t.Errorf("%d rows are left", len(rows))
	}
}

func TestCaptureSettingsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.Create()
	id := w.newKey(`{}`).Get("id").Str
	for _, body := range []string{`{"capturePercent":-1}`, `{"capturePercent":101}`, `{"capturePercent":"50"}`, `{"captureHours":0}`, `{"captureHours":169}`} {
		if status, a := w.API("PATCH", "/api/settings", body); status != 400 {
			t.Errorf("settings %s: got %d %s", body, status, a.Raw)
		}
		if status, a := w.API("PUT", "/api/keys/"+id, body); status != 400 {
			t.Errorf("key %s: got %d %s", body, status, a.Raw)
		}
	}
	for _, tt := range []struct{ body, settings, key string }{
		{`{"capturePercent":5,"captureHours":48}`, "5 48", "5 48"},
		{`{"capturePercent":0}`, "0 48", "0 48"},
		{`{"capturePercent":null,"captureHours":null}`, "0 24", " "},
	} {
		s, k := w.OK("PATCH", "/api/settings", tt.body), w.OK("PUT", "/api/keys/"+id, tt.body)
		if got := s.Get("capturePercent").String() + " " + s.Get("captureHours").String(); got != tt.settings {
			t.Errorf("settings %s: got %s", tt.body, got)
		}
		if got := k.Get("capturePercent").String() + " " + k.Get("captureHours").String(); got != tt.key {
			t.Errorf("key %s: got %s", tt.body, got)
		}
	}
}
