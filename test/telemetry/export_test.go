package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// canaries are secrets and texts that must not be exported.
const (
	prompt     = "canary-of-the-prompt"
	answer     = "canary-of-the-answer"
	accountKey = "sk-canary-of-the-account-0123456789"
	token      = "canary-of-the-collector"
)

// world is a gateway with a machine, an account, and a collector for each format.
type world struct {
	*front.Gateway
	*testing.T
	machine, key string
	sent         []*fake.Seen // to the collectors
}

func newWorld(t *testing.T) *world {
	w := &world{Gateway: front.New(nil), T: t}
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch {
		case strings.Contains(s.URL, "otel.example"):
			w.sent = append(w.sent, s)
			return fake.JSON("{}")
		case strings.Contains(s.Body, "broken"):
			return fake.Reply(400, `{"error":{"message":"the prompt `+prompt+` with the key `+accountKey+` is not valid","code":"bad"}}`)
		}
		return fake.JSON(`{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
			answer + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`)
	}
	made := map[string]string{}
	must(t, json.Unmarshal(w.call("/api/machines", front.AdminToken, `{}`), &made))
	w.machine, w.key = made["machineId"], made["apiKey"]
	w.call("/"+w.machine+"/api/providers", front.AdminToken, `{"provider":"openai-compatible-0123abcd","name":"up \"quoted\" 😀","apiKey":"`+accountKey+
		`","providerSpecificData":{"baseUrl":"http://127.0.0.1:9/v1","prefix":"up"}}`)
	for _, protocol := range []string{"http/protobuf", "http/json"} {
		w.call("/"+w.machine+"/api/destinations", front.AdminToken, `{"kind":"otlp","settings":{"endpoint":"https://otel.example/`+protocol+
			`","headers":"x-token=`+token+`","protocol":"`+protocol+`"}}`)
	}
	return w
}

// call makes a POST and returns the body of its answer.
func (w *world) call(path, key, body string) []byte {
	w.Helper()
	return w.send("POST", path, key, body)
}

func (w *world) send(method, path, key, body string) []byte {
	w.Helper()
	r := w.App.Serve(context.Background(), &httpmsg.Request{
		Method: method, Path: path, Origin: "http://weir.test", Length: int64(len(body)), Start: w.Now(), Body: stream.FromString(body),
		Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}, {Name: "content-type", Value: "application/json"},
			{Name: "x-weir-tags", Value: "project=a\u00e9\"\n"}},
	})
	b, err := io.ReadAll(r.Body)
	must(w.T, err)
	for _, after := range r.After {
		after(context.Background())
	}
	return b
}

// bodies returns what the collectors have of a signal, by the format.
func (w *world) bodies(signal string) map[string][]byte {
	got := map[string][]byte{}
	for _, s := range w.sent {
		rest, ok := strings.CutSuffix(s.URL, "/v1/"+signal)
		if !ok {
			continue
		}
		r, err := gzip.NewReader(strings.NewReader(s.Body))
		must(w.T, err)
		body, err := io.ReadAll(r)
		must(w.T, err)
		got[rest[strings.LastIndexByte(rest, '/')+1:]] = body
	}
	if len(got) != 2 {
		w.Fatalf("%d formats of %s", len(got), signal)
	}
	return got
}

// Everything that is exported in either format is read by both libraries, and has no secret
// and no text of a request or an answer.
func TestExportsAreReadAndHaveNoSecret(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		text := prompt
		if i == 2 {
			text += " broken"
		}
		w.call("/v1/chat/completions", w.key, `{"model":"up/m","messages":[{"role":"user","content":"`+text+`"}]}`)
	}
	w.call("/v1/chat/completions", w.key, `{"model":"no\nsuch \"model\" \ud83d\ude00","messages":[{"role":"user","content":"`+prompt+`"}]}`)
	for range 12 {
		w.Clock.Add(11 * time.Second)
		w.Objects.Alarms(t.Context())
	}
	for signal, m := range map[string]proto.Message{
		"traces": &traces.ExportTraceServiceRequest{}, "metrics": &metrics.ExportMetricsServiceRequest{}, "logs": &logs.ExportLogsServiceRequest{},
	} {
		for format, body := range w.bodies(signal) {
			if format == "protobuf" {
				known(t, m, body)
			}
			shown, n, err := read(signal, format, body)
			if err != nil || n == 0 {
				t.Errorf("%s in %s: %d, %v", signal, format, n, err)
			}
			for _, canary := range []string{prompt, answer, accountKey, token, w.key, front.AdminToken} {
				if strings.Contains(shown+string(body), canary) {
					t.Errorf("%s in %s has %q", signal, format, canary)
				}
			}
		}
	}
}

// A destination that has chosen bodies gets those that are captured, masked, as an event of both
// formats that the library reads; one that has not gets none.
func TestCapturedBodiesAreReadAndHaveNoSecret(t *testing.T) {
	w := newWorld(t)
	for _, protocol := range []string{"http/protobuf", "http/json"} {
		w.call("/"+w.machine+"/api/destinations", front.AdminToken, `{"kind":"otlp","settings":{"endpoint":"https://otel.example/chosen/`+protocol+
			`","headers":"x-token=`+token+`","protocol":"`+protocol+`","signals":"logs","bodies":true}}`)
	}
	sent := func(text string) string {
		return `{"model":"up/m","messages":[{"role":"user","content":"` + text + `"}]}`
	}
	w.call("/v1/chat/completions", w.key, sent(prompt+" before"))
	w.send("PATCH", "/"+w.machine+"/api/settings", front.AdminToken, `{"capturePercent":100}`)
	w.Clock.Add(time.Minute) // until the snapshot is read again
	w.call("/v1/chat/completions", w.key, sent(prompt+" with "+accountKey))
	for range 5 {
		w.Clock.Add(11 * time.Second)
		w.Objects.Alarms(t.Context())
	}
	events := 0
	for _, s := range w.sent {
		r, err := gzip.NewReader(strings.NewReader(s.Body))
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		chosen := strings.Contains(s.URL, "/chosen/")
		if has := strings.Contains(string(body), prompt) || strings.Contains(string(body), answer); has != chosen {
			t.Errorf("%s: has a body: %v", s.URL, has)
		}
		for _, secret := range []string{accountKey, token, w.key, front.AdminToken, "before"} {
			if strings.Contains(string(body), secret) {
				t.Errorf("%s has %q", s.URL, secret)
			}
		}
		if !chosen {
			continue
		}
		events++
		e := plogotlp.NewExportRequest()
		decode := e.UnmarshalJSON
		if strings.Contains(s.URL, "protobuf") {
			known(t, &logs.ExportLogsServiceRequest{}, body)
			decode = e.UnmarshalProto
		}
		must(t, decode(body))
		l := e.Logs().ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		if l.EventName() != "gen_ai.client.inference.operation.details" || l.TraceID().IsEmpty() || l.SpanID().IsEmpty() {
			t.Errorf("%s: %q in %v", s.URL, l.EventName(), l.TraceID())
		}
		m := l.Attributes().AsRaw()
		for name, want := range map[string][2]string{"gen_ai.input.messages": {"user", prompt + " with ***"}, "gen_ai.output.messages": {"assistant", answer}} {
			message := m[name].([]any)[0].(map[string]any)
			part := message["parts"].([]any)[0].(map[string]any)
			if message["role"] != want[0] || part["type"] != "text" || !strings.Contains(part["content"].(string), want[1]) {
				t.Errorf("%s: %s is %v", s.URL, name, message)
			}
		}
	}
	if events != 2 {
		t.Errorf("%d events", events)
	}
}

// read decodes a body as a collector does. It returns it as text and the number of entries.
func read(signal, format string, body []byte) (shown string, n int, err error) {
	var m interface {
		UnmarshalProto([]byte) error
		UnmarshalJSON([]byte) error
		MarshalJSON() ([]byte, error)
	}
	count := func() int { return 0 }
	switch signal {
	case "traces":
		r := ptraceotlp.NewExportRequest()
		m, count = r, func() int { return r.Traces().SpanCount() }
	case "metrics":
		r := pmetricotlp.NewExportRequest()
		m, count = r, func() int { return r.Metrics().DataPointCount() }
	default:
		r := plogotlp.NewExportRequest()
		m, count = r, func() int { return r.Logs().LogRecordCount() }
	}
	decode := m.UnmarshalProto
	if format == "json" {
		decode = m.UnmarshalJSON
	}
	if err := decode(body); err != nil {
		return "", 0, err
	}
	text, err := m.MarshalJSON()
	return string(text), count(), err
}
