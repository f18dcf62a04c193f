package machine

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/objects"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
)

// bucket is an S3-compatible store with what was put into it.
type bucket struct {
	*fake.Upstream
	t       *testing.T
	objects map[string]string // by their address, unpacked
	puts    map[string]int
	answer  func(s *fake.Seen) (a fake.Answer, stored bool) // nil for success
}

func (b *bucket) reply(s *fake.Seen) fake.Answer {
	a, stored := fake.Answer{Status: 200}, true
	if b.answer != nil {
		a, stored = b.answer(s)
	}
	b.puts[s.URL]++
	if stored && strings.HasSuffix(s.URL, ".jsonl.gz") {
		zip, err := gzip.NewReader(strings.NewReader(s.Body))
		if err != nil {
			b.t.Fatal(err)
		}
		text, err := io.ReadAll(zip)
		if err != nil {
			b.t.Fatal(err)
		}
		if was, ok := b.objects[s.URL]; ok && was != string(text) {
			b.t.Errorf("%s has other lines than before", s.URL)
		}
		b.objects[s.URL] = string(text)
	}
	return a
}

// seqs returns the numbers of the lines in the order of the names of their objects, those
// of each hour together.
func (b *bucket) seqs() (seqs []int64) {
	for _, text := range b.objects {
		last := int64(0)
		for line := range strings.Lines(text) {
			seq := gjson.Get(line, "seq").Int()
			if seq <= last {
				b.t.Errorf("line %d follows %d", seq, last)
			}
			last, seqs = seq, append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// logged is a machine whose requests are exported to a bucket.
func logged(t *testing.T) (w *world, b *bucket, id string) {
	w = newWorld(t)
	b = &bucket{t: t, objects: map[string]string{}, puts: map[string]int{}, Upstream: &fake.Upstream{Clock: w.Clock}}
	b.Answer = b.reply
	w.obj.Do = b
	w.Create()
	id = w.OK("POST", "/api/destinations", `{"name":"Logs","kind":"s3","settings":{"endpoint":"https://s3.example.com",
		"region":"auto","bucket":"logs","prefix":"weir","accessKeyId":"AKIAEXAMPLE",
		"secretAccessKey":"0123456789abcdef0123456789abcdef01234567"}}`).Get("id").Str
	return w, b, id
}

// dropped returns how many requests were not exported.
func (w *world) dropped(id string) int64 { return w.tx().Outbox(id).Dropped }

// calls reports n calls.
func (w *world) calls(n int) {
	list := make([]store.Request, n)
	for i := range list {
		list[i] = store.Request{ID: fmt.Sprintf("r%d", i), At: w.Clock.Now().UnixMilli(), Endpoint: "/v1/embeddings",
			Status: 200, Attempts: 1, LatencyMs: 5}
	}
	body, _ := json.Marshal(map[string]any{"requests": list})
	w.Want(200, "report", string(body))
}

func TestLineOfTheLogIsTheItemOfTheListOfRequests(t *testing.T) {
	w, b, _ := logged(t)
	key := w.OK("POST", "/api/keys", `{"name":"Laptop \"blue\" \u2028"}`).Get("id").Str
	w.Want(200, "report", fmt.Sprintf(`{"requests":[
		{"id":"req_1","at":%d,"keyId":%q,"endpoint":"/v1/chat/completions","asked":"best","model":"openai/gpt-5","provider":"openai",
		"connectionId":"openai-00000001","status":200,"outcome":"succeeded","latencyMs":1200,"firstMs":300,"sentMs":20,"attempts":2,
		"failed":[{"connectionId":"openai-00000002","provider":"openai","model":"openai/gpt-5","status":429,"code":"rate_limit_exceeded","text":"Slow down.","ms":15}],
		"tags":["project=a","team=b"],"inputTokens":10,"outputTokens":20,"costUsd":0.0012,"priced":true},
		{"id":"req_2","at":%d,"endpoint":"/v1/embeddings","asked":"<\u0000\"\n\t>","status":404,"error":"model_not_found","outcome":"refused","reason":"model","latencyMs":1,"attempts":0}]}`,
		w.Clock.Now().UnixMilli(), key, w.Clock.Now().Add(-time.Hour).UnixMilli()))
	w.pass(310, func(int) {})
	if len(b.objects) != 2 {
		t.Fatalf("%d objects: %v", len(b.objects), b.objects)
	}
	var got strings.Builder
	listed := w.OK("GET", "/api/requests", "").Get("data")
	for _, name := range slices.Sorted(maps.Keys(b.objects)) {
		at := strings.LastIndexByte(name, '-') // the id of the key is a part of the digest
		fmt.Fprintf(&got, "%sDIGEST%s\n%s", name[:at+1], name[at+13:], strings.ReplaceAll(b.objects[name], key, "KEY"))
		for line := range strings.Lines(b.objects[name]) {
			item := listed.Get(fmt.Sprintf(`#(seq==%d)`, gjson.Get(line, "seq").Int()))
			item.ForEach(func(field, value gjson.Result) bool {
				if gjson.Get(line, field.Str).Raw != value.Raw {
					t.Errorf("%s: %s in the line, %s in the list", field.Str, gjson.Get(line, field.Str).Raw, value.Raw)
				}
				return true
			})
		}
	}
	const golden = "testdata/log.golden"
	if os.Getenv("GOLDEN") == "update" {
		os.MkdirAll("testdata", 0o755)
		os.WriteFile(golden, []byte(got.String()), 0o644)
	}
	if want, _ := os.ReadFile(golden); got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// A machine's program is killed while a put is under way, or its answer is lost: the same
// object is put again, with the same content.
func TestRepeatedObjectReplacesItself(t *testing.T) {
	w, b, _ := logged(t)
	w.calls(3)
	lost := 0
	b.answer = func(*fake.Seen) (fake.Answer, bool) {
		lost++
		return fake.Answer{Err: errLost}, true
	}
	for last := 0; lost < 4; {
		w.pass(1, func(int) {
			if lost > last { // more come in meanwhile
				last = lost
				w.calls(2)
			}
		})
	}
	b.answer = nil
	w.pass(1200, func(int) {})
	want := numbered(3 + 2*(lost-1))
	if got := b.seqs(); !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
	for name, n := range b.puts {
		if n != lost+1 && n != 1 {
			t.Errorf("%s was put %d times", name, n)
		}
	}
}

func numbered(n int) (list []int64) {
	for i := range n {
		list = append(list, int64(i+1))
	}
	return list
}

func TestLinesWaitForABucketThatIsDown(t *testing.T) {
	w, b, id := logged(t)
	down := true
	b.answer = func(*fake.Seen) (fake.Answer, bool) {
		if down {
			return fake.Answer{Status: 503, Body: `<Error><Code>SlowDown</Code></Error>`}, false
		}
		return fake.Answer{Status: 200}, true
	}
	w.pass(3700, func(s int) {
		if s%5 == 0 {
			w.calls(4)
		}
	})
	if said := w.tx().Outbox(id).Error; !strings.Contains(said, "SlowDown") {
		t.Errorf("status %q", said)
	}
	down = false
	w.pass(1300, func(int) {})
	if got, want := b.seqs(), numbered(740*4); !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d: %v", len(got), len(want), got)
	}
	if dropped := w.dropped(id); dropped != 0 {
		t.Errorf("%d dropped", dropped)
	}
}

func TestLinesBeyondTheBoundAreDroppedAndCounted(t *testing.T) {
	w, b, id := logged(t)
	b.answer = func(*fake.Seen) (fake.Answer, bool) { return fake.Answer{Err: errLost}, false }
	n := 0
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(size int) string { // does not shrink
		b := make([]byte, size)
		for i := range b {
			b[i] = 'g' + byte(random.IntN(20))
		}
		return string(b)
	}
	for w.dropped(id) == 0 && n < 100_000 {
		list := make([]store.Request, 500)
		for i := range list {
			list[i] = store.Request{ID: "r", At: w.Clock.Now().UnixMilli(), Endpoint: "/v1/x", Status: 500, Attempts: 1,
				Failed: []store.Attempt{{Text: noise(300), Code: noise(300)}, {Text: noise(300), Code: noise(300)}}}
		}
		body, _ := json.Marshal(map[string]any{"requests": list})
		w.Want(200, "report", string(body))
		n += 500
		w.pass(1, func(int) {})
	}
	if n == 100_000 {
		t.Fatal("nothing is dropped")
	}
	size := 0
	for _, row := range w.Loc.Storage(mid).Dump() {
		size += len(row)
	}
	if size > 24<<20 {
		t.Errorf("%d bytes are stored", size)
	}
	b.answer = nil
	w.pass(3700, func(int) {})
	dropped := w.dropped(id)
	got := b.seqs()
	if int64(len(got))+dropped != int64(n) {
		t.Errorf("%d of %d lines, and %d were dropped", len(got), n, dropped)
	}
	if got[len(got)-1] != int64(n) || got[0] == 1 {
		t.Errorf("lines %d to %d of %d are left: the oldest make way", got[0], got[len(got)-1], n)
	}
}

func TestUnlistedRequestsAreCountedAsDropped(t *testing.T) {
	w, b, id := logged(t)
	w.Want(200, "report", `{"requests":[{"id":"a","at":1,"endpoint":"/v1/x","status":200,"attempts":1}],"unlisted":7}`)
	w.pass(320, func(int) {})
	if got := w.dropped(id); got != 7 || len(b.objects) != 1 {
		t.Errorf("%d dropped, %d objects", got, len(b.objects))
	}
}

func TestLogOfAThousandRequestsASecondIsWholeAndCostsFewRows(t *testing.T) {
	w, b, id := logged(t)
	for range 5 {
		w.Clock.Add(2 * time.Second)
		w.Loc.Alarms(w.Ctx)
	}
	w.obj.MaxRequests = 100_000 // as natively
	was := w.Loc.Storage(mid).Written
	const seconds = 60
	w.pass(seconds, func(int) { w.calls(1000) })
	t.Logf("%d rows a second", (w.Loc.Storage(mid).Written-was)/seconds)
	w.pass(400, func(int) {})
	if got := b.seqs(); len(got) != seconds*1000 {
		t.Errorf("%d lines, want %d; %d dropped", len(got), seconds*1000, w.dropped(id))
	}
}

func TestLogCostsNoRowForEachReport(t *testing.T) {
	rows := func(w *world) int {
		for range 5 {
			w.Clock.Add(2 * time.Second)
			w.Loc.Alarms(w.Ctx)
		}
		was := w.Loc.Storage(mid).Written
		w.pass(1800, func(int) { w.calls(1) })
		return w.Loc.Storage(mid).Written - was
	}
	plain := newWorld(t)
	plain.Create()
	w, b, _ := logged(t)
	without, with := rows(plain), rows(w)
	t.Logf("%d rows in half an hour, %d without a log", with, without)
	if len(b.objects) < 5 || with-without > 12*len(b.objects) {
		t.Errorf("%d rows more for %d objects", with-without, len(b.objects))
	}
}

func TestDeletionRemovesWhatWaits(t *testing.T) {
	for _, what := range []string{"destination", "machine"} {
		w, b, id := logged(t)
		b.answer = func(*fake.Seen) (fake.Answer, bool) { return fake.Answer{Status: 403}, false }
		w.pass(700, func(int) { w.calls(40) })
		if what == "machine" {
			w.Want(204, "delete", `{"now":true}`)
		} else {
			w.OK("DELETE", "/api/destinations/"+id, "")
			w.pass(20, func(int) { w.calls(1) })
		}
		for key, row := range w.Loc.Storage(mid).Dump() {
			if strings.HasPrefix(key, "log") || strings.Contains(key, id) || key == storage.ActivityRow && strings.Contains(string(row), "logopen:") {
				t.Errorf("deleted %s: %s is left", what, key)
			}
		}
	}
}

func TestPausedLogSendsWhatWaitsAndTakesNoMore(t *testing.T) {
	w, b, id := logged(t)
	w.calls(3)
	w.pass(12, func(int) {})
	w.OK("PUT", "/api/destinations/"+id, `{"enabled":false}`)
	w.calls(2)
	w.pass(700, func(int) {})
	if len(b.objects) != 0 {
		t.Error("a paused destination is called")
	}
	w.OK("PUT", "/api/destinations/"+id, `{"enabled":true}`)
	w.calls(1)
	w.pass(700, func(int) {})
	if got := b.seqs(); !slices.Equal(got, []int64{1, 2, 3, 6}) {
		t.Errorf("lines %v", got)
	}
}

var errLost = objects.ErrUnreachable
