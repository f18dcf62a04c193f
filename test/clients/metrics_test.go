package clients

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/wire/metrics"
)

// Accept fields of Prometheus 3 and of clients that know the text format alone.
const (
	prometheus3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	textOnly    = "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)

// parsed reads a text as Prometheus itself does, and returns the samples by name and labels.
func parsed(t *testing.T, text []byte, contentType string) map[string]float64 {
	t.Helper()
	p, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatalf("%s: %v", contentType, err)
	}
	out := map[string]float64{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v in\n%s", contentType, err, text)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, at, v := p.Series()
		var l labels.Labels
		p.Labels(&l)
		if _, twice := out[l.String()]; twice || at != nil {
			t.Errorf("%s comes twice, or has a time", l)
		}
		out[l.String()] = v
	}
}

// Both libraries read what is written, whatever the texts of people contain.
func TestMetricsWithHostileNamesAreReadByBothLibraries(t *testing.T) {
	names := []string{"", "plain", `quote " backslash \ end\`, "line\nbreak\r\n", "emoji 🦦 é", "\x00\x01\x1b[31m\x7f", "bad \xff utf-8",
		"# HELP x y", `"} 1`, "e\u0301 \u202e \u2028", strings.Repeat("long", 200)}
	gauge := metrics.Family{Name: "weir.test.gauge", Unit: "1", Help: "A \"quoted\" \\ text\nof two lines.", Labels: []string{"name", "n"}}
	counter := metrics.Family{Name: "weir.test", Type: metrics.Counter, Unit: "USD", Help: "Costs.", Labels: []string{"name", "n"}}
	histogram := metrics.Family{Name: "weir.wait", Type: metrics.Histogram, Unit: "s", Help: "Waits.", Labels: []string{"name", "n"}, Bounds: []float64{0.064, 131.072}}
	for i, name := range names {
		gauge.Add(float64(i)/3, name, fmt.Sprint(i))
		counter.Add(1e17*float64(i), name, fmt.Sprint(i))
		histogram.Series = append(histogram.Series, metrics.Series{Values: []string{name, fmt.Sprint(i)}, Value: 7.5, Buckets: []int64{int64(i), 2, 3}})
	}
	gauge.Add(math.Inf(1), "inf", "x")
	families := []metrics.Family{gauge, counter, histogram}
	parts := []metrics.Part{{Families: families[:1]}, {Machine: "a", Families: families}, {Machine: "b", Families: families}}
	samples := 0
	for _, accept := range []string{prometheus3, textOnly} {
		f := metrics.Accepted(accept)
		text := metrics.Text(parts, f)
		got := parsed(t, text, f.ContentType())
		if samples == 0 {
			samples = len(got)
		}
		if len(got) != samples || samples != 3*len(gauge.Series)+2*len(names)*(1+5) {
			t.Errorf("%d samples, and %d", samples, len(got))
		}
		bucket := fmt.Sprintf(`{__name__="weir_wait_seconds_bucket", le="+Inf", machine="b", n="4", name=%q}`, names[4])
		if got[bucket] != 4+2+3 {
			t.Errorf("%s: got %v", bucket, got[bucket])
		}
		if f.OpenMetrics {
			continue
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		read, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(read["weir_test_usd_total"].GetMetric()); n != 2*len(names) {
			t.Errorf("%d series of the counter", n)
		}
		h := read["weir_wait_seconds"].GetMetric()[4].GetHistogram()
		if h.GetSampleCount() != 9 || h.GetSampleSum() != 7.5 || h.GetBucket()[1].GetUpperBound() != 131.072 {
			t.Errorf("the histogram: %v", h)
		}
	}
}

func (w *world) scrape(path, token, accept string) (status int, contentType string, text []byte) {
	w.t.Helper()
	req, _ := http.NewRequest("GET", w.server.URL+path, nil)
	req.Header.Set("authorization", "Bearer "+token)
	req.Header.Set("accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("content-type"), text
}

// A gateway with traffic answers both formats, with the same numbers.
func TestMetricsOfAGateway(t *testing.T) {
	w := newWorld(t)
	w.Answer = func(r *fake.Seen) fake.Answer {
		if strings.Contains(r.URL, "/messages") {
			return fake.Answer{Status: 429, Body: slowDown}
		}
		return speak(r, false)
	}
	c := openai.NewClient(option.WithAPIKey(w.key), option.WithBaseURL(w.server.URL+"/v1"), option.WithMaxRetries(0))
	for _, model := range upstreams {
		c.Chat.Completions.New(t.Context(), chatOf(model))
	}
	c.Chat.Completions.New(t.Context(), chatOf("invented/model-of-nobody"))
	_, kind, text := w.scrape("/metrics?keys=true", front.AdminToken, textOnly)
	got := parsed(t, text, kind)
	if kind != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("content type %q", kind)
	}
	sum := func(name string, has ...string) (n float64) {
	next:
		for l, v := range got {
			for _, part := range append(has, `__name__="`+name+`"`) {
				if !strings.Contains(l, part) {
					continue next
				}
			}
			n += v
		}
		return n
	}
	for _, tt := range []struct {
		want float64
		name string
		has  []string
	}{
		{1, "weir_requests_total", []string{`outcome="succeeded"`, `endpoint="/v1/chat/completions"`}},
		{1, "weir_requests_total", []string{`reason="model"`}},
		{1, "weir_attempts_total", []string{`result="ok"`}},
		{1, "weir_attempts_total", []string{`result="limited"`}},
		{3, "weir_tokens_total", []string{`direction="input"`, `model="up/m"`}},
		{2, "weir_tokens_total", []string{`direction="output"`, `model="up/m"`}},
		{0, "weir_tokens_total", []string{`model="an/m"`}},
		{1, "weir_unpriced_attempts_total", nil},
		{1, "weir_request_seconds_count", []string{`provider="openai-compatible-0123abcd"`}},
		{2, "weir_connection_state", nil},
		{1, "weir_connection_state", []string{`state="limited"`}},
		{1, "weir_build_info", nil},
		{1, "weir_machine_up", nil},
	} {
		if n := sum(tt.name, tt.has...); n != tt.want {
			t.Errorf("%s %v: %v, want %v", tt.name, tt.has, n, tt.want)
		}
	}
	if n := sum("weir_key_requests_total"); n < 2 {
		t.Errorf("requests by key: %v", n)
	}
	_, kind, text = w.scrape("/metrics?keys=true", front.AdminToken, prometheus3)
	if kind != "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores" {
		t.Errorf("content type %q", kind)
	}
	if again := parsed(t, text, kind); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Errorf("OpenMetrics has\n%v, the text format\n%v", again, got)
	}
	if strings.Contains(string(text), "invented") {
		t.Error("an invented name has a series")
	}
}

func chatOf(name string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: name, Messages: hello}
}
