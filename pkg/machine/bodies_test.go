package machine

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/sealed"
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/secret"
	"weir/pkg/wire/upstream"
)

const (
	asked    = `{"messages":"canary of the prompt \"é\""}`
	answered = "data: {\"canary of the answer\"}\n\n"
)

// exported is a world with a collector and a bucket, and what they were sent.
type exported struct {
	*world
	*fake.Upstream
	otlp, s3 string
}

// newExported creates the destinations with a value of bodies, "" for none.
func newExported(t *testing.T, bodies string, answer func(s *fake.Seen) fake.Answer) *exported {
	w := newWorld(t)
	if answer == nil {
		answer = func(*fake.Seen) fake.Answer { return fake.Reply(200, "") }
	}
	e := &exported{world: w, Upstream: &fake.Upstream{Clock: w.Clock, Answer: answer}}
	w.obj.Do = e.Upstream
	w.Create()
	if bodies != "" {
		bodies = `,"bodies":` + bodies
	}
	e.otlp = w.OK("POST", "/api/destinations", `{"kind":"otlp","settings":{"endpoint":"https://otel.example.com","protocol":"http/json"`+bodies+`}}`).Get("id").Str
	e.s3 = w.OK("POST", "/api/destinations", `{"kind":"s3","settings":{"endpoint":"https://s3.example.com","region":"auto","bucket":"logs",
		"accessKeyId":"AKIAEXAMPLE","secretAccessKey":"0123456789abcdef0123456789abcdef01234567"`+bodies+`}}`).Get("id").Str
	return e
}

// capture reports a request with its bodies, sealed, as a gateway does.
func (e *exported) capture(id, request, answer string) {
	e.Helper()
	doc := capture.Document{
		Request: capture.Part{Type: "application/json", Bytes: int64(len(request)), Length: len(request)},
		Answer:  capture.Part{Type: "text/event-stream", Bytes: int64(len(answer)), Length: len(answer), Cut: strings.HasPrefix(answer, "cut")},
	}
	head, err := json.Marshal(doc)
	if err != nil {
		e.Fatal(err)
	}
	bodies, err := e.obj.Keyring.Seal(mid, rpc.CaptureField, id, secret.New(string(head)+"\n"+request+answer))
	if err != nil {
		e.Fatal(err)
	}
	record := fmt.Sprintf(`{"id":%q,"at":%d,"endpoint":"/v1/chat/completions","asked":"best","model":"openai/gpt-5","provider":"openai","connectionId":"c1",
		"status":200,"outcome":"succeeded","latencyMs":5,"attempts":1,"finish":"stop","captured":true,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`,
		id, e.Clock.Now().UnixMilli())
	e.Want(200, "report", `{"requests":[`+record+`]}`)
	e.Want(200, "capture.put", strings.ReplaceAll(record, "\n", "")+"\n"+string(bodies))
}

// plain returns what was sent, unpacked.
func (e *exported) plain(s *fake.Seen) string {
	if !strings.HasSuffix(s.URL, ".gz") {
		return unpacked(e.T, s)
	}
	r, err := gzip.NewReader(strings.NewReader(s.Body))
	if err != nil {
		e.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		e.Fatal(err)
	}
	return string(b)
}

// sent returns what was sent with bodies, by the host.
func (e *exported) sent() map[string][]string {
	got := map[string][]string{}
	for _, s := range e.Seen {
		if strings.Contains(s.URL, "/bodies/") || strings.Contains(e.plain(s), detailsEvent) {
			host := strings.Split(s.URL, "/")[2]
			got[host] = append(got[host], e.plain(s))
		}
	}
	return got
}

const detailsEvent = "gen_ai.client.inference.operation.details"

// No body leaves unless both the capture and the destination ask for it.
func TestBodiesLeaveOnlyByChoice(t *testing.T) {
	for _, bodies := range []string{"", "false", "true"} {
		for _, percent := range []string{"0", "100"} {
			e := newExported(t, bodies, nil)
			e.OK("PATCH", "/api/settings", `{"capturePercent":`+percent+`}`)
			e.capture("req_1", asked, answered)
			e.pass(320, func(int) {})
			all, want := "", bodies == "true" && percent == "100"
			for _, s := range e.Seen {
				all += e.plain(s)
			}
			if strings.Contains(all, "canary") != want || len(e.sent()["s3.example.com"]) == 1 != want || len(e.sent()["otel.example.com"]) == 1 != want {
				t.Errorf("bodies %q, capture of %s percent: %d calls, %v", bodies, percent, len(e.Seen), e.sent())
			}
			if !strings.Contains(all, "weir.request.id") || !strings.Contains(all, `"id":"req_1"`) {
				t.Error("the request itself is not exported")
			}
			for key, row := range e.Loc.Storage(mid).Dump() {
				if strings.Contains(string(row), "canary") {
					t.Errorf("%s has a body in the clear", key)
				}
			}
			if n := e.tx().Outbox(e.otlp).Dropped + e.tx().Outbox(e.s3).Dropped; n != 0 {
				t.Errorf("%d dropped", n)
			}
		}
	}
}

func TestBodiesAreLinkedToTheirRequest(t *testing.T) {
	e := newExported(t, "true", nil)
	e.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	e.capture("req_1", asked, answered)
	e.pass(15, func(int) {})
	spans := ""
	for _, s := range e.Seen {
		if strings.HasSuffix(s.URL, "/v1/traces") {
			spans = e.plain(s)
		}
		if strings.Contains(s.URL, "s3.example") && !strings.Contains(s.URL, "/logs/bodies/machine%3D"+mid+"/date%3D2027-01-15/hour%3D08/req_1.json.gz") {
			t.Errorf("the object is at %s", s.URL)
		}
	}
	event := gjson.Get(e.sent()["otel.example.com"][0], "resourceLogs.0.scopeLogs.0.logRecords.0")
	client := gjson.Get(spans, "resourceSpans.0.scopeSpans.0.spans.1")
	if event.Get("eventName").Str != detailsEvent || event.Get("traceId").Str != "0af7651916cd43dd8448eb211c80319c" || client.Get("kind").Int() != 3 ||
		event.Get("spanId").Str != client.Get("spanId").Str || event.Get("flags").Int() != 1 {
		t.Errorf("event %s\nspan %s", event.Raw, client.Raw)
	}
	value := func(key string) gjson.Result { return event.Get(`attributes.#(key=="` + key + `").value`) }
	for key, want := range map[string]string{"weir.request.id": "req_1", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
		"gen_ai.request.model": "gpt-5", "weir.requested_model": "best"} {
		if got := value(key).Get("stringValue").Str; got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	for key, want := range map[string]string{"gen_ai.input.messages": `["user","text",` + quoted(asked) + `]`,
		"gen_ai.output.messages": `["assistant","text",` + quoted(answered) + `]`} {
		const parts = `arrayValue.values.0.kvlistValue.values.1.value.arrayValue.values.0.kvlistValue.values`
		got := quoted(value(key).Get(`arrayValue.values.0.kvlistValue.values.0.value.stringValue`).Str,
			value(key).Get(parts+`.0.value.stringValue`).Str, value(key).Get(parts+`.1.value.stringValue`).Str)
		if "["+got+"]" != want {
			t.Errorf("%s is %s", key, got)
		}
	}
	if value("weir.bodies.cut").Exists() {
		t.Error("whole bodies are said to be cut")
	}
	object := gjson.Parse(e.sent()["s3.example.com"][0])
	listed := e.OK("GET", "/api/captures/req_1", "")
	for _, body := range []string{"request", "answer"} {
		if object.Get(body).Raw != listed.Get(body).Raw || object.Get(body+".text").Str == "" {
			t.Errorf("%s is %s in the object and %s in the list", body, object.Get(body).Raw, listed.Get(body).Raw)
		}
	}
	if object.Get("id").Str != "req_1" || object.Get("machine").Str != mid || object.Get("model").Str != "openai/gpt-5" || object.Get("time").Str == "" {
		t.Errorf("the object is %s", object.Raw)
	}
}

func quoted(texts ...string) string {
	b, _ := json.Marshal(texts)
	return strings.Trim(string(b), "[]")
}

// An event is within the bound of an item, and says that its texts are cut; the object is whole.
func TestLongBodiesAreCutForACollector(t *testing.T) {
	long := func(piece string) string { return strings.Repeat(piece, capture.MaxBody/len(piece)) }
	for name, tt := range map[string]struct{ request, answer string }{
		"plain":      {long("x"), long("y")},
		"escaped":    {long("\"\n"), "short"},
		"characters": {long("é😀"), long("\n")},
		"captured":   {"short", "cut after a while"},
	} {
		e := newExported(t, "true", nil)
		e.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
		e.capture("req_1", tt.request, tt.answer)
		e.pass(15, func(int) {})
		event := e.sent()["otel.example.com"][0]
		if len(event) > maxEntryBody || name != "captured" && len(event) < maxEntryBody/4 || !strings.Contains(event, "weir.bodies.cut") || strings.Contains(event, "\uFFFD") {
			t.Errorf("%s: %d bytes", name, len(event))
		}
		if object := gjson.Parse(e.sent()["s3.example.com"][0]); object.Get("request.text").Str != tt.request || object.Get("answer.text").Str != tt.answer {
			t.Errorf("%s: the object is not whole", name)
		}
	}
}

// The program is killed after the bodies were stored, and while they are sent: both destinations get
// them later, the same bytes each time.
func TestBodiesSurviveKills(t *testing.T) {
	tries := 0
	e := newExported(t, "true", nil)
	e.Answer = func(s *fake.Seen) fake.Answer {
		if e.obj.buffers = (buffers{}); strings.Contains(s.URL, "/v1/logs") || strings.Contains(s.URL, "/bodies/") {
			if tries++; tries <= 4 {
				return fake.Answer{Err: upstream.ErrNetwork}
			}
		}
		return fake.Reply(200, "")
	}
	e.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	e.capture("req_1", asked, answered)
	e.obj.buffers = buffers{}
	e.pass(600, func(int) {})
	for host, bodies := range e.sent() {
		for _, b := range bodies {
			if b != bodies[0] || len(bodies) < 2 {
				t.Errorf("%s: try of %d: %s", host, len(bodies), b)
			}
		}
	}
	if len(e.sent()) != 2 || len(e.tx().Outbox(e.otlp).Items)+len(e.tx().Outbox(e.s3).Items) != 0 {
		t.Errorf("sent %v", e.sent())
	}
}

// A captured request that waits is judged again before it is sent, and counted if it is not.
func TestBodiesThatWaitAreNotSentAgainstTheWill(t *testing.T) {
	down := true
	for name, change := range map[string]func(e *exported){
		"the capture was deleted": func(e *exported) { e.OK("DELETE", "/api/captures/req_1", "") },
		"the choice has ended": func(e *exported) {
			for _, id := range []string{e.otlp, e.s3} {
				e.OK("PUT", "/api/destinations/"+id, `{"settings":{"bodies":"false"}}`)
			}
		},
		"the bodies do not open": func(e *exported) { e.Write(mid, storage.CapturePrefix+"req_1", "v1.sealed") },
		"the time is over":       func(e *exported) { e.Clock.Add(25 * time.Hour) },
		"the key is gone":        func(e *exported) { e.obj.Keyring = sealed.Keys(t, strings.Repeat("n", 40)) },
		"an earlier gateway's":   nil,
	} {
		down = true
		e := newExported(t, "true", func(*fake.Seen) fake.Answer {
			if down {
				return fake.Reply(503, "")
			}
			return fake.Reply(200, "")
		})
		e.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
		if change == nil {
			e.Want(200, "capture.put", `{"id":"req_1"}`+"\nv1.sealed")
		} else {
			e.capture("req_1", asked, answered)
		}
		e.pass(2, func(int) {})
		e.Seen = nil
		if down = false; change != nil {
			change(e)
		}
		for range 100 {
			e.pass(1, func(int) { e.Clock.Add(29 * time.Minute) })
		}
		if got := e.sent(); len(got) != 0 {
			t.Errorf("%s: sent %v", name, got)
		}
		for _, id := range []string{e.otlp, e.s3} {
			o := e.tx().Outbox(id)
			wait := slices.ContainsFunc(o.Items, func(d storage.Delivery) bool { return d.Type == storage.Bodies })
			if o.Dropped == 0 || wait {
				t.Errorf("%s: %d dropped, bodies wait: %v", name, o.Dropped, wait)
			}
		}
	}
}

// Bodies that no destination takes are bounded, and displace no spans or lines.
func TestBodiesOfADeadDestinationAreBounded(t *testing.T) {
	e := newExported(t, "true", func(*fake.Seen) fake.Answer { return fake.Answer{Err: upstream.ErrNetwork} })
	e.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	for i := range 300 {
		e.capture(fmt.Sprintf("req_%d", i), asked, answered)
	}
	for id, other := range map[string]string{e.otlp: storage.Telemetry, e.s3: storage.Lines} {
		e.pass(310, func(int) {})
		types := map[string]int{}
		o := e.tx().Outbox(id)
		for _, d := range o.Items {
			types[d.Type]++
		}
		if types[storage.Bodies] > 256 || types[storage.Bodies] < 200 || types[other] == 0 || o.Dropped < 44 {
			t.Errorf("%s: %v wait, %d were dropped", other, types, o.Dropped)
		}
	}
	e.OK("DELETE", "/api/destinations/"+e.s3, "")
	for key := range e.Loc.Storage(mid).Dump() {
		if strings.Contains(key, e.s3) {
			t.Errorf("%s is left", key)
		}
	}
}

// The operator's collector gets no body, whatever an owner has chosen.
func TestCollectorOfTheOperatorGetsNoBodies(t *testing.T) {
	e := newExported(t, "", nil)
	values := deliver.EnvironmentValues{}
	values[0] = "https://operator.example.com" // the endpoint
	var err error
	if e.obj.Collector, err = deliver.Environment(&values, deliver.Policy{}); err != nil || e.obj.Collector == nil {
		t.Fatal(err)
	}
	e.OK("PATCH", "/api/settings", `{"capturePercent":100}`)
	e.capture("req_1", asked, answered)
	e.pass(100, func(int) {})
	calls := 0
	for _, s := range e.Seen {
		if strings.Contains(s.URL, "operator.example") {
			calls++
		}
		if strings.Contains(e.plain(s), "canary") {
			t.Errorf("%s has a body", s.URL)
		}
	}
	if calls == 0 {
		t.Error("the operator's collector got nothing")
	}
}
