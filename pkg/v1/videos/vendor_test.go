package videos

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/golden"
	"weir/internal/testgw/fake"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
)

func retryAfter(err error) time.Duration {
	var e *apierr.Error
	errors.As(err, &e)
	return e.RetryAfter
}

// TestVendors replays recorded answers: testdata/vendors/<name>.json holds
// provider, request, the answer to the creation and those to polls; the golden
// has what went up and what the client saw.
func TestVendors(t *testing.T) {
	files, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	tested := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, ".golden.json") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var rec struct {
				Provider string
				Request  json.RawMessage
				Created  json.RawMessage
				Polls    []json.RawMessage
				ID       string
			}
			if err := json.Unmarshal(raw, &rec); err != nil {
				t.Fatal(err)
			}
			tested[rec.Provider] = true
			w := newWorld(t, rec.Provider)
			n := 0
			w.Answer = func(s *fake.Seen) fake.Answer {
				if len(w.Seen) == 1 {
					return fake.Answer{Status: 200, Body: string(rec.Created)}
				}
				n++
				return fake.Answer{Status: 200, Body: string(rec.Polls[n-1])}
			}
			created, c := w.create(string(rec.Request))
			type up struct {
				Call string          `json:"call"`
				Body json.RawMessage `json:"body,omitempty"`
			}
			var got struct {
				Sent    []up     `json:"sent"`
				Dropped []string `json:"dropped,omitempty"`
				Created string   `json:"created"`
				States  []string `json:"states"`
			}
			got.Created, got.Dropped = created, c.Trace.Dropped
			id := gjson.Get(strings.TrimPrefix(created, "200 "), "request_id").String()
			for n < len(rec.Polls) {
				before := n
				if got.States = append(got.States, w.poll(id)); n == before {
					break
				}
			}
			for _, s := range w.Seen {
				u := up{Call: s.Method + " " + s.URL}
				if s.Body != "" {
					u.Body = json.RawMessage(s.Body)
				}
				got.Sent = append(got.Sent, u)
			}
			golden.JSON(t, "vendors/"+name, got)
		})
	}
	for _, s := range shapes {
		for _, id := range s.providers {
			d := provider.Lookup(id)
			if d == nil || !d.Serves("videos") || !tested[id] {
				t.Errorf("%s has no recorded answers", id)
			}
		}
	}
}

// seconds and size are OpenAI's names of duration, aspect_ratio and resolution.
func TestOpenAIsNamesOfDurationAndSize(t *testing.T) {
	sent := func(s *shape, fields string) (string, []string) {
		r, err := parse([]byte(`{"model":"m","prompt":"p",` + fields + `}`))
		if err != nil {
			t.Fatal(err)
		}
		in, err := r.input()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.create(in, "m", generations)
		if err != nil {
			t.Fatalf("%s: %v", s.providers, err)
		}
		return string(p.body), p.dropped
	}
	for _, s := range shapes {
		if s.native {
			continue
		}
		want, dropped := sent(s, `"duration":8,"aspect_ratio":"16:9","resolution":"720p"`)
		for _, fields := range []string{
			`"seconds":"8","size":"1280x720"`, `"seconds":8,"size":"1280x720"`, `"duration":8,"size":"1280x720"`, `"seconds":8,"aspect_ratio":"16:9","resolution":"720p"`,
		} {
			got, lost := sent(s, fields)
			if i := slices.Index(lost, "size"); i >= 0 { // of which a part was read
				lost[i] = "aspect_ratio"
			}
			if got != want || !slices.Equal(lost, dropped) {
				t.Errorf("%s, %s: sent %s, dropped %v; want %s, %v", s.providers, fields, got, lost, want, dropped)
			}
		}
		// A size of another form is a model's own.
		got, lost := sent(s, `"size":"832*480"`)
		if own := s == &fal || s == &replicate || s == &bfl; own != strings.Contains(got, "832*480") || own == slices.Contains(lost, "size") {
			t.Errorf("%s: sent %s, dropped %v", s.providers, got, lost)
		}
	}
}
