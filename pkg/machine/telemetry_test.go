package machine

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/upstream"
)

// collected is a world with a collector, whose answers are scripted, and what it was sent.
type collected struct {
	*world
	*fake.Upstream
	id string
}

func newCollected(t *testing.T, settings string, answer func(s *fake.Seen) fake.Answer) *collected {
	t.Helper()
	w := newWorld(t)
	c := &collected{w, &fake.Upstream{Clock: w.Clock, Answer: answer}, ""}
	w.obj.Do = c.Upstream
	w.Create()
	if !strings.Contains(settings, "protocol") {
		settings += `,"protocol":"http/json"`
	}
	_, a := w.API("POST", "/api/destinations",
		`{"kind":"otlp","settings":{"endpoint":"https://otel.example.com/base/","headers":"api-key=s3cret%20x,x=y"`+settings+`}}`)
	if c.id = a.Get("body.id").Str; c.id == "" {
		t.Fatal(a)
	}
	return c
}

// report reports n requests, each of two spans, of which some failed, and lets time pass
// until they are sent.
func (c *collected) report(n, failed int) {
	c.Helper()
	var list []string
	for i := range n {
		end := `"status":200`
		if i < failed {
			end = `"status":502,"error":"upstream_unreachable","outcome":"provider_failed"`
		}
		list = append(list, fmt.Sprintf(`{"id":"req_%032x","at":%d,"endpoint":"/v1/chat/completions","model":"openai/gpt-5","provider":"openai","latencyMs":5,"attempts":1,%s}`,
			i, c.Clock.Now().UnixMilli(), end))
	}
	c.Want(200, "report", `{"requests":[`+strings.Join(list, ",")+`]}`)
	c.pass10()
}

func (c *collected) pass10() {
	c.Clock.Add(11 * time.Second)
	c.Loc.Alarms(c.Ctx)
	c.Loc.Alarms(c.Ctx)
}

func (c *collected) view() gjson.Result { return c.OK("GET", "/api/destinations/"+c.id, "") }

func unpacked(t *testing.T, s *fake.Seen) string {
	t.Helper()
	if s.Header.Get("content-encoding") != "gzip" {
		return s.Body
	}
	r, err := gzip.NewReader(strings.NewReader(s.Body))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRequestsAreExportedWithinSeconds(t *testing.T) {
	c := newCollected(t, "", nil)
	from := c.Clock.Now()
	c.report(3, 1)
	if took := c.Clock.Now().Sub(from); took > time.Minute || len(c.Seen) != 3 {
		t.Fatalf("%d calls within %v", len(c.Seen), took)
	}
	paths := map[string]string{}
	for _, s := range c.Seen {
		if s.Header.Get("api-key") != "s3cret x" || s.Header.Get("x") != "y" || s.Header.Get("content-type") != "application/json" {
			t.Errorf("the header is %v", s.Header)
		}
		paths[strings.TrimPrefix(s.URL, "https://otel.example.com/base")] = unpacked(t, s)
	}
	spans := gjson.Get(paths["/v1/traces"], "resourceSpans.0.scopeSpans.0.spans").Array()
	logs := gjson.Get(paths["/v1/logs"], "resourceLogs.0.scopeLogs.0.logRecords").Array()
	if len(spans) != 6 || len(logs) != 1 || spans[0].Get("traceId").Str != logs[0].Get("traceId").Str {
		t.Errorf("%d spans and %d lines: %v", len(spans), len(logs), paths)
	}
	if got := gjson.Get(paths["/v1/traces"], "resourceSpans.0.resource.attributes.0.value.stringValue").Str; got != "weir" {
		t.Errorf("service.name = %q", got)
	}
	if v := c.view(); v.Get("status").Str != "active" || v.Get("waiting").Int() != 0 || v.Get("dropped").Int() != 0 {
		t.Errorf("the destination is %s", v.Raw)
	}
}

func TestOptionsOfCollectors(t *testing.T) {
	for name, tt := range map[string]struct {
		settings string
		want     string // the signals and the number of spans
	}{
		"no share":   {`,"sample":"0"`, "traces 2 logs metrics"}, // failures are always exported
		"only logs":  {`,"signals":"logs"`, "logs"},
		"only spans": {`,"signals":"traces, metrics","compression":"none"`, "traces 6 metrics"},
	} {
		c := newCollected(t, tt.settings, nil)
		c.report(3, 1)
		got := ""
		for _, s := range c.Seen {
			_, signal, _ := strings.Cut(s.URL, "/v1/")
			if got = strings.TrimSpace(got + " " + signal); signal == "traces" {
				got += fmt.Sprint(" ", gjson.Get(unpacked(t, s), "resourceSpans.0.scopeSpans.0.spans.#").Int())
			}
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// The answer of a collector decides on a repeat, as OTLP has it, and everything that it does
// not take is counted.
func TestAnswersOfCollectors(t *testing.T) {
	huge := strings.Repeat("x", 10<<20)
	for name, tt := range map[string]struct {
		answer  fake.Answer
		calls   int // within five minutes
		dropped int64
	}{
		"accepted":             {fake.JSON("{}"), 1, 0},
		"garbage":              {fake.OK("text/html", "<html>\x00\xff"), 1, 0},
		"10 MB":                {fake.JSON(huge), 1, 0},
		"nothing":              {fake.Answer{Err: upstream.ErrNetwork}, 4, 0},
		"stall":                {fake.Answer{Err: upstream.ErrTimeout}, 4, 0},
		"in part":              {fake.JSON(`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`), 1, 2},
		"in part, protobuf":    {fake.OK("application/x-protobuf", "\x0a\x02\x08\x02"), 1, 2},
		"too large":            {fake.Reply(413, ""), 1, 4},
		"refused":              {fake.Reply(400, "\x0a\x03bad"), 1, 4},
		"internal error":       {fake.Reply(500, ""), 1, 4},
		"unavailable":          {fake.Reply(503, ""), 4, 0},
		"too many requests":    {fake.Reply(429, "", httpmsg.Field{Name: "retry-after", Value: "100"}), 3, 0},
		"redirect":             {fake.Reply(302, "", httpmsg.Field{Name: "location", Value: "https://elsewhere.example/"}), 4, 0},
		"not a valid status":   {fake.Reply(42, ""), 1, 4},
		"the key is not valid": {fake.Reply(401, ""), 4, 0},
	} {
		c := newCollected(t, `,"signals":"traces"`, func(*fake.Seen) fake.Answer { return tt.answer })
		c.report(2, 0)
		for range 300 {
			c.Clock.Add(time.Second)
			c.Loc.Alarms(c.Ctx)
		}
		v := c.view()
		if calls := len(c.Seen); calls != tt.calls || v.Get("dropped").Int() != tt.dropped {
			t.Errorf("%s: %d calls, %d spans dropped, want %d, %d: %s", name, calls, v.Get("dropped").Int(), tt.calls, tt.dropped, v.Raw)
		}
		for _, s := range c.Seen {
			if s.Body != c.Seen[0].Body || !strings.HasPrefix(s.URL, "https://otel.example.com/") {
				t.Errorf("%s: a repeat differs, or went to %s", name, s.URL)
			}
		}
		if strings.Contains(v.Raw, "s3cret") || strings.Contains(v.Raw, "/base") {
			t.Errorf("%s: the answer shows a secret: %s", name, v.Raw)
		}
	}
}

// A collector that is down for a day costs bounded memory, and every span that it did not
// get is counted.
func TestDeadCollectorIsBounded(t *testing.T) {
	c := newCollected(t, `,"signals":"traces"`, func(*fake.Seen) fake.Answer { return fake.Answer{Err: upstream.ErrTimeout} })
	total := int64(0)
	for range 40 {
		c.report(600, 0)
		total += 1200
		o := c.tx().Outbox(c.id)
		size, waiting := 0, int64(0)
		for _, d := range o.Items {
			size, waiting = size+d.Size, waiting+d.Entries
			if d.Entries > 512 || d.Size > 256<<10 {
				t.Fatalf("an item has %d spans and %d bytes", d.Entries, d.Size)
			}
		}
		if size > 4<<20 || len(o.Items) > 16 || waiting+o.Dropped != total {
			t.Fatalf("%d items of %d bytes wait; %d spans wait and %d were dropped of %d", len(o.Items), size, waiting, o.Dropped, total)
		}
	}
	c.Clock.Add(25 * time.Hour)
	c.Loc.Alarms(c.Ctx)
	if o := c.tx().Outbox(c.id); len(o.Items) != 0 || o.Dropped != total {
		t.Errorf("after a day %d items wait, %d of %d spans are counted as dropped", len(o.Items), o.Dropped, total)
	}
}

func TestCollectorOfTheOperatorGetsEveryMachine(t *testing.T) {
	w := newWorld(t)
	up := &fake.Upstream{Clock: w.Clock, Answer: func(*fake.Seen) fake.Answer { return fake.Reply(400, "") }}
	values := deliver.EnvironmentValues{}
	for i, name := range deliver.EnvironmentVariables() {
		values[i] = map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://otel.example.com/own/path",
			"OTEL_SERVICE_NAME": "edge", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_RESOURCE_ATTRIBUTES": "a=b%20c"}[name]
	}
	var err error
	if w.obj.Collector, err = deliver.Environment(&values, deliver.Policy{}); err != nil {
		t.Fatal(err)
	}
	w.obj.Do = up
	w.Create()
	c := &collected{w, up, storage.OfEnvironment}
	for range 8 {
		c.report(1, 1)
	}
	if len(up.Seen) != 8 || up.Seen[7].URL != "https://otel.example.com/own/path" {
		t.Fatalf("%d calls; the operator's collector is never disabled", len(up.Seen))
	}
	attrs := gjson.Get(unpacked(t, up.Seen[0]), "resourceSpans.0.resource.attributes")
	if attrs.Get("0.value.stringValue").Str != "edge" || attrs.Get("1.value.stringValue").Str != "b c" {
		t.Errorf("the resource is %s", attrs.Raw)
	}
	if strings.Contains(w.OK("GET", "/api/destinations", "").Raw, "otel.example.com") {
		t.Error("the operator's collector is listed")
	}
}

// Bodies of protobuf are stored as they are sent, in a tenth of their size. One that an earlier
// version has stored is compressed when it is sent.
func TestBodiesAreStoredCompressed(t *testing.T) {
	for settings, want := range map[string]struct {
		most   int // bytes of a stored span
		coding string
	}{
		`"protocol":"http/protobuf"`:                      {90, "gzip"},
		`"protocol":"http/protobuf","compression":"none"`: {400, ""},
		`"protocol":"http/json"`:                          {900, "gzip"},
	} {
		c := newCollected(t, `,"signals":"traces",`+settings, func(*fake.Seen) fake.Answer { return fake.Reply(503, "") })
		tx := c.tx()
		old := storage.Delivery{DestinationID: c.id, Type: storage.Telemetry, Title: "traces", Body: []byte("\x0a\x00"), Until: tx.Now + storage.Hour}
		tx.Enqueue(old)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		c.report(200, 0)
		items := c.tx().Outbox(c.id).Items
		if last := items[len(items)-1]; len(items) != 2 || last.Entries != 400 || last.Size > want.most*400 {
			t.Errorf("%s: %+v", settings, items)
		}
		for range 300 {
			c.Clock.Add(time.Second)
			c.Loc.Alarms(c.Ctx)
		}
		sent := map[string]int{}
		for _, s := range c.Seen {
			if s.Header.Get("content-encoding") != want.coding {
				t.Errorf("%s: the coding is %q", settings, s.Header.Get("content-encoding"))
			}
			sent[unpacked(t, s)]++
		}
		if len(sent) != 2 || sent["\x0a\x00"] == 0 {
			t.Errorf("%s: %d bodies in %d calls", settings, len(sent), len(c.Seen))
		}
	}
}

// A machine lists fewer requests than it exports: those of ten busy seconds are all exported.
func TestBusyMachineIsExportedWhole(t *testing.T) {
	c := newCollected(t, `,"signals":"traces"`, nil)
	c.report(1, 0)
	const calls, seconds = 190, 10 // of reports, one each second
	for range seconds {
		var list []string
		for i := range calls {
			list = append(list, fmt.Sprintf(`{"id":"req_%032x","at":%d,"endpoint":"/v1/chat/completions","status":200,"attempts":1}`, i, c.Clock.Now().UnixMilli()))
		}
		c.Want(200, "report", `{"requests":[`+strings.Join(list, ",")+`]}`)
		c.Clock.Add(time.Second)
	}
	c.pass10()
	spans := 0
	for _, s := range c.Seen {
		spans += len(gjson.Get(unpacked(t, s), "resourceSpans.0.scopeSpans.0.spans").Array())
	}
	if v := c.view(); spans != 2*(1+calls*seconds) || v.Get("dropped").Int() != 0 {
		t.Errorf("%d spans of %d calls: %s", spans, calls*seconds, v.Raw)
	}
}

func TestTestOfCollectorSendsASpan(t *testing.T) {
	c := newCollected(t, "", nil)
	_, a := c.API("POST", "/api/destinations/"+c.id+"/test", "")
	if !a.Get("body.delivered").Bool() || len(c.Seen) != 1 ||
		gjson.Get(unpacked(t, c.Seen[0]), "resourceSpans.0.scopeSpans.0.spans.0.name").Str != "weir.test" {
		t.Errorf("%s, %d calls", a, len(c.Seen))
	}
}

func TestMetricsAreExportedEachMinuteOfUse(t *testing.T) {
	c := newCollected(t, `,"signals":"metrics"`, nil)
	use := func(n int) {
		c.Want(200, "report", fmt.Sprintf(`{"usage":[{"endpoint":"/v1/chat/completions","provider":"openai","model":"openai/gpt-5","connectionId":"c","requests":%d,"calls":%d,"inputTokens":7}],`+
			`"requests":[{"id":"req_%032d","at":%d,"endpoint":"/v1/chat/completions","status":200,"attempts":1}]}`, n, n, n, c.Clock.Now().UnixMilli()))
	}
	pass := func(seconds int) {
		for range seconds {
			c.Clock.Add(time.Second)
			c.Loc.Alarms(c.Ctx)
		}
	}
	use(3)
	pass(60)
	if len(c.Seen) != 1 || !strings.HasSuffix(c.Seen[0].URL, "/v1/metrics") {
		t.Fatalf("%d exports within a minute", len(c.Seen))
	}
	value := func(i int, name string) string {
		path := `resourceMetrics.0.scopeMetrics.0.metrics.#(name=="` + name + `").sum.dataPoints.0.`
		body := unpacked(t, c.Seen[i])
		return gjson.Get(body, path+"asDouble").Raw + " since " + gjson.Get(body, path+"startTimeUnixNano").Str
	}
	if got, want := value(0, "weir.requests"), "3 since 1800000000000000000"; got != want {
		t.Errorf("requests: %s, want %s", got, want)
	}
	use(4)
	use(5)
	pass(70)
	if len(c.Seen) != 2 {
		t.Fatalf("%d exports, want one more", len(c.Seen))
	}
	if got, want := value(1, "weir.requests"), "12 since 1800000000000000000"; got != want {
		t.Errorf("requests: %s, want %s", got, want)
	}
	pass(600)
	if len(c.Seen) != 2 {
		t.Errorf("%d exports; a machine that is not in use exports nothing", len(c.Seen)-2)
	}
	use(1)
	c.Clock.Add(-24 * time.Hour)
	pass(60)
	use(2)
	pass(150)
	if len(c.Seen) < 3 || len(c.Seen) > 5 {
		t.Errorf("%d exports after the clock went back", len(c.Seen)-2)
	}
}

// A collector gets the GenAI metrics in the names that its destination chooses.
func TestConventionsOfMetricsAreChosen(t *testing.T) {
	for settings, want := range map[string]string{"": "gen_ai.client.inference.duration", `,"conventions":"1.41"`: "gen_ai.client.operation.duration"} {
		c := newCollected(t, `,"signals":"metrics"`+settings, nil)
		c.Want(200, "report", fmt.Sprintf(`{"usage":[{"endpoint":"/v1/chat/completions","provider":"openai","model":"openai/gpt-5","connectionId":"c","requests":1,"calls":1,"latency":[9,1]}],`+
			`"requests":[{"id":"req_%032d","at":%d,"endpoint":"/v1/chat/completions","status":200,"attempts":1}]}`, 1, c.Clock.Now().UnixMilli()))
		for range 7 {
			c.pass10()
		}
		if len(c.Seen) == 0 {
			t.Fatal("no export")
		}
		list := gjson.Get(unpacked(t, c.Seen[0]), `resourceMetrics.0.scopeMetrics.0.metrics.#(name%"gen_ai*")#.name`).Raw
		if list != `["`+want+`"]` {
			t.Errorf("%q: got %s, want %s", settings, list, want)
		}
	}
}

func TestDeltasAreExportedOnRequest(t *testing.T) {
	c := newCollected(t, `,"signals":"metrics","temporality":"delta"`, nil)
	for n := range 3 {
		c.Want(200, "report", fmt.Sprintf(`{"usage":[{"endpoint":"/v1/chat/completions","provider":"openai","model":"openai/gpt-5","connectionId":"c","requests":%d,"calls":%d}],`+
			`"requests":[{"id":"req_%032d","at":%d,"endpoint":"/v1/chat/completions","status":200,"attempts":1}]}`, n+1, n+1, n, c.Clock.Now().UnixMilli()))
		for range 7 {
			c.pass10()
		}
	}
	var got []string
	for _, s := range c.Seen {
		m := gjson.Get(unpacked(t, s), `resourceMetrics.0.scopeMetrics.0.metrics.#(name=="weir.requests").sum`)
		got = append(got, m.Get("aggregationTemporality").Raw+":"+m.Get("dataPoints.0.asDouble").Raw)
	}
	if want := ": 1:2 1:3"; strings.Join(got, " ") != want {
		t.Errorf("requests: %q, want %q", strings.Join(got, " "), want)
	}
	if !c.has(c.tx().ID, storage.TotalsPrefix+c.id) {
		t.Fatal("no totals are stored")
	}
	c.OK("DELETE", "/api/destinations/"+c.id, "")
	if c.has(c.tx().ID, storage.TotalsPrefix+c.id) {
		t.Error("the totals of a deleted destination are left")
	}
}
