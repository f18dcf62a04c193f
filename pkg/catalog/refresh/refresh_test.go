package refresh

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

const now = int64(1_795_000_000_000)

// some are prices of the catalogue, which are no change.
func some() map[string]map[string]string {
	all := map[string]map[string]string{"openai": {}}
	for _, m := range catalog.Models("openai") {
		if m.Price != "" && len(all["openai"]) < 20 {
			all["openai"][m.ID] = string(m.Price)
		}
	}
	return all
}

func list(prices map[string]map[string]string, more ...string) []byte {
	raw, err := json.Marshal(prices)
	if err != nil {
		panic(err)
	}
	return []byte(`{"format":"weir-prices","version":1,` + strings.Join(append(more, `"prices":`), ",") + string(raw) + `}`)
}

func with(alias, id, price string) map[string]map[string]string {
	all := some()
	if all[alias] == nil {
		all[alias] = map[string]string{}
	}
	all[alias][id] = price
	return all
}

func take(t *testing.T, raw []byte, before catalog.Update) *catalog.Update {
	t.Helper()
	s := Source{URL: "https://prices.example/p.json"}
	p, err := s.Take(bytes.NewReader(raw), &before, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOnlyWhatDiffersIsStored(t *testing.T) {
	p := take(t, list(some()), catalog.Update{})
	if p.Rows != 0 || p.Held != 0 || p.Text != "" || p.FetchedAt != now || p.Signed {
		t.Errorf("%+v", p)
	}
	all := with("openai", "gpt-5", "1/8/0.1")
	all["anthropic"] = map[string]string{"claude-new": "3/15/0.3/3.75/6"}
	all["no-such-alias"] = map[string]string{"m": "1/2"}
	p = take(t, list(all), catalog.Update{})
	if want := "anthropic/claude-new\t3/15/0.3/3.75/6\nopenai/gpt-5\t1/8/0.1\n"; p.Text != want || p.Rows != 2 || p.Held != 0 {
		t.Errorf("%+v, want %q", p, want)
	}
	if got := p.PriceOf("openai", "gpt-5"); got != "1/8/0.1" {
		t.Errorf("%q", got)
	}
}

func TestImplausiblePricesAreHeldBack(t *testing.T) {
	built := catalog.PriceOf("openai", "gpt-5") // 1.25/10/0.125 @priority=2.5/20/0.25
	if !strings.HasPrefix(string(built), "1.25/10/0.125") {
		t.Fatalf("the catalogue has %s", built)
	}
	for price, held := range map[string]bool{
		"12.5/100/1.25":                false,
		"12.6/10/0.125":                true,
		"0.124/10/0.125":               true,
		"1.25/0/0.125":                 true,
		"0/0":                          true,
		"1.25":                         true, // the output is unknown
		"/10":                          true,
		"1.25/10":                      false,
		"1.25/10 >1=10000/10000":       true,
		"1.25/10 >200000=2.5/15":       false,
		"1.25/10 @flex=0.001/0.001":    true,
		"1.25/10 @flex=0.6/5":          false,
		"1.25/10 @flex>9=300/5":        true,
		"1.25/10 request=0.1":          true,
		"1.25/10 image@hd=1":           true,
		"1.25/10 audioInput=40":        false,
		"1.25/10 audioInput=4000":      true,
		"1.25/10/0.125 @priority=0/20": true,
	} {
		p := take(t, list(with("openai", "gpt-5", price)), catalog.Update{})
		if (p.Held == 1) != held || held && p.Text != "" || !held && p.Text != "openai/gpt-5\t"+price+"\n" {
			t.Errorf("%s: %+v", price, p)
		}
	}
	// A price that is held back leaves the last one, within reach of the catalogue's.
	last := *take(t, list(with("openai", "gpt-5", "12/90/1")), catalog.Update{})
	p := take(t, list(with("openai", "gpt-5", "100/900/10")), last)
	if p.Text != last.Text || p.Held != 1 || p.Rows != 1 {
		t.Errorf("%+v", p)
	}
	// A model of the source alone is compared with its last price.
	last = *take(t, list(with("openai", "gpt-new", "1/2")), catalog.Update{})
	if p := take(t, list(with("openai", "gpt-new", "11/2")), last); p.Held != 1 || p.Text != "openai/gpt-new\t1/2\n" {
		t.Errorf("%+v", p)
	}
	for id, held := range map[string]int{"gpt-new": 1, "gpt-new:free": 0} {
		if p := take(t, list(with("openai", id, "0/0")), catalog.Update{}); p.Held != held {
			t.Errorf("%s for nothing: %+v", id, p)
		}
	}
}

// A model that the build lacks has no earlier price to be compared with: no rate of it may
// be dearer than any vendor's.
func TestDearPricesOfUnknownModelsAreHeldBack(t *testing.T) {
	dear := catalog.Update{Text: "openai/gpt-new\t99999/99999\n"}
	for price, held := range map[string]bool{
		"2000/2000":                 false,
		"1/2001":                    true,
		"99999/99999":               true,
		"1/2 >200000=1/99999":       true,
		"1/2 @flex=1/99999":         true,
		"1/2 audioOutput=2001":      true,
		"character=2000":            false,
		"character=99999":           true,
		"image=10":                  false,
		"image@hd=10.01 image=0.04": true,
		"minute=600":                false,
		"second=99999":              true,
		"1/2 request=99999":         true,
		"1/2 search=99999":          true,
	} {
		for _, last := range []catalog.Update{{}, dear} {
			p := take(t, list(with("openai", "gpt-new", price)), last)
			if held && (p.Text != "" || p.Held != 1 || p.Dear != "openai/gpt-new") {
				t.Errorf("%s: %+v", price, p)
			}
			if !held && last.Text == "" && (p.Text != "openai/gpt-new\t"+price+"\n" || p.Held != 0 || p.Dear != "") {
				t.Errorf("%s: %+v", price, p)
			}
		}
	}
	all := some()
	for i := range 2 {
		all["openai"][fmt.Sprint("gpt-new-", i)] = "5000/5000"
	}
	if p := take(t, list(all), catalog.Update{}); p.Held != 2 || p.Dear != "openai/gpt-new-0, openai/gpt-new-1" {
		t.Errorf("%+v", p)
	}
}

func TestDocumentsThatAreNotBelievedAreRefused(t *testing.T) {
	raised := some()
	for id := range maps.Clone(raised["openai"]) {
		raised["openai"][id] = "5000/5000"
	}
	many := map[string]map[string]string{"openai": {}}
	for i := range maxRows + 1 {
		many["openai"][fmt.Sprint("m", i)] = "1/2"
	}
	long := map[string]map[string]string{"openai": {}}
	for i := range 5000 {
		long["openai"][fmt.Sprintf("%0250d", i)] = "1/2"
	}
	for want, raw := range map[string][]byte{
		"not JSON":            []byte(`<html>`),
		"is not JSON":         []byte(`{"prices":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}"),
		"it has 0 prices":     []byte(`{}`),
		"it has 1 prices":     list(map[string]map[string]string{"openai": {"a": "1/2"}}),
		"version 2":           []byte(`{"format":"weir-prices","version":2,"prices":{}}`),
		"version 99":          []byte(`{"format":"weir-prices","version":` + strings.Repeat("9", 1<<20) + `,"prices":{}}`),
		"at most 16 clauses":  list(with("openai", "gpt-5", strings.Repeat("@a=1 ", 17))),
		`openai: "gpt-5" has`: list(with("openai", "gpt-5", "cheap")),
		"more than 10 times":  list(raised),
		"more than 20000":     list(many),
		"more than 1 MiB":     list(long),
		"more than 4 MiB":     []byte(`{"openai":{"models":{"a":"` + strings.Repeat("x", MaxPart) + `"}}}`),
		"models have more":    []byte(`{"prices":"` + strings.Repeat("x", MaxPart-1000) + `","models":"` + strings.Repeat("x", 1000) + `"}`),
		"more than 64 MiB":    append(list(some()), strings.Repeat(" ", MaxDocument)...),
		"it is not JSON":      append(list(some()), '}'),
	} {
		s := Source{URL: "https://prices.example/p.json"}
		if p, err := s.Take(bytes.NewReader(raw), &catalog.Update{}, now); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %+v, %v", want, p, err)
		}
	}
}

func TestSignedSources(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(" " + base64.StdEncoding.EncodeToString(public) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "x", base64.StdEncoding.EncodeToString(public[1:]), base64.StdEncoding.EncodeToString(private)} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("the key %q is accepted", bad)
		}
	}
	s := Source{URL: "https://prices.example/p.json", Key: key}
	raw := list(with("openai", "gpt-5", "1/8/0.1"), fmt.Sprintf(`"issuedAt":%d`, now/1000))
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(private, raw))
	if err := s.Verify(raw, []byte(sig+"\n")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", sig[:len(sig)-4], base64.StdEncoding.EncodeToString(ed25519.Sign(private, raw[1:]))} {
		if s.Verify(raw, []byte(bad)) == nil {
			t.Errorf("the signature %q is accepted", bad)
		}
	}
	if s.Verify(append(raw, ' '), []byte(sig)) == nil {
		t.Error("a document that was changed is accepted")
	}
	p, err := s.Take(bytes.NewReader(raw), &catalog.Update{}, now)
	if err != nil || !p.Signed || p.IssuedAt != now || p.Rows != 1 {
		t.Fatalf("%+v %v", p, err)
	}
	if !s.Issued(p) || s.Issued(&catalog.Update{Source: s.URL}) || (&Source{URL: "https://other.example/"}).Issued(p) {
		t.Error("prices of another source, or without a signature, count")
	}
	day := 24 * time.Hour.Milliseconds()
	for at, ok := range map[int64]bool{now - 1000: false, now: true, now + 1000: true, now + day + 1000: false, 0: false} {
		raw := list(some(), fmt.Sprintf(`"issuedAt":%d`, at/1000))
		if _, err := s.Take(bytes.NewReader(raw), p, now); (err == nil) != ok {
			t.Errorf("issued at %d: %v", at-now, err)
		}
	}
	// A signed price may be nothing.
	raw = list(with("openai", "own", "0/0"), fmt.Sprintf(`"issuedAt":%d`, now/1000))
	if p, err := s.Take(bytes.NewReader(raw), p, now); err != nil || p.Held != 0 || p.Rows != 1 {
		t.Errorf("%+v %v", p, err)
	}
}

func TestModelsDev(t *testing.T) {
	claude := catalog.PriceOf("anthropic", "claude-sonnet-4-5")
	gpt := catalog.PriceOf("openai", "gpt-5")
	if claude == "" || gpt == "" {
		t.Fatal("the catalogue lacks the models of this test")
	}
	raw := `{"anthropic":{"models":{"claude-new":{"cost":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75,"context_over_200k":{"input":6,"output":22.5,"cache_read":0.6,"cache_write":7.5}}}}},
	"openai":{"models":{
	 "gpt-5":{"cost":{"input":1.25,"output":10,"cache_read":0.125}},
	 "gpt-5-mini":{"cost":{"input":0.3,"output":2.5,"cache_read":0.03}},
	 "gpt-image-1-mini":{"cost":{"input":2.5,"output":9}},
	 "a":{"cost":{"input":0.1,"output":0.2,"reasoning":0.2}},
	 "b":{"cost":{"input":0.1,"output":0.2,"reasoning":0.3}},
	 "c":{"cost":{"input":0,"output":0}},
	 "c:free":{"cost":{"input":0,"output":0}},
	 "d":{"cost":{"input":"0.1","output":0.2}},
	 "e":{},
	 "f":{"cost":{"input":1,"output":2,"input_audio":10,"output_audio":20}},
	 "g\u0001":{"cost":{"input":1,"output":2}}}},
	"google":{"models":{"gemini-new":{"cost":{"input":0.1,"output":0.4}}}},
	"amazon-bedrock":{"models":{"anthropic.claude-new":{"cost":{"input":3,"output":15}},"us.anthropic.claude-new":{"cost":{"input":3.3,"output":16.5}}}},
	"xai":{"models":{"grok-new":{"cost":{"input":1,"output":2,"tiers":[{"input":2,"output":4,"tier":{"type":"context","size":200000}}]}}}},
	"github-copilot":{"models":{"x":{"cost":{"input":1,"output":2}}}}}`
	raw = strings.Replace(raw, `"e":{}`, `"e":{},"h":{"cost":{"input":1,"output":2,"tiers":[{"input":2,"output":4,"cache_read":0.1,"tier":{"type":"context","size":272000}}],"context_over_200k":{"input":2,"output":4}}}`, 1)
	d, err := read(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range d.rows {
		got[r.alias+"/"+r.id] = string(r.price)
	}
	want := map[string]string{
		"anthropic/claude-new":            "3/15/0.3/3.75/6 >200000=6/22.5/0.6/7.5/12",
		"openai/gpt-5":                    string(gpt),
		"openai/gpt-5-mini":               "0.3/2.5/0.03",
		"openai/gpt-image-1-mini":         "2.5/9 imageInput=2.5 imageOutput=8",
		"openai/a":                        "0.1/0.2",
		"openai/c:free":                   "0/0",
		"openai/h":                        "1/2 >272000=2/4/0.1",
		"openai/f":                        "1/2 audioInput=10 audioOutput=20",
		"gemini/gemini-new":               "0.1/0.4",
		"bedrock/anthropic.claude-new":    "3.3/16.5", // of a region, as with us.
		"bedrock/us.anthropic.claude-new": "3.3/16.5",
		"xai/grok-new":                    "1/2 >199999=2/4", // a call of exactly the size pays more
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v,\nwant %v", got, want)
	}
	rows := map[string]string{}
	for _, d := range provider.All() {
		for _, name := range d.ModelsDev {
			if rows[name] != "" || !catalog.Has(d.Alias) {
				t.Errorf("%s: %s is of %q too, or the catalogue has no alias %s", d.ID, name, rows[name], d.Alias)
			}
			rows[name] = d.ID
		}
	}
	if len(rows) == 0 || vendorOf("google-vertex-anthropic") != "vertex" || vendorOf("unknown") != "" {
		t.Errorf("%v", rows)
	}
}

// endless is a document of 50 MB whose other providers the catalogue lacks.
type endless struct {
	head, part, tail string
	parts            int
	rest             string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		switch {
		case e.head != "":
			e.rest, e.head = e.head, ""
		case e.parts > 0:
			e.rest, e.parts = e.part, e.parts-1
		case e.tail != "":
			e.rest, e.tail = e.tail, ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestLargeDocumentIsReadByProvider(t *testing.T) {
	priced := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"next-%d":{"name":"Next, {","cost":{"input":1,"output":2}}`, i)
		}
		return b.String()[1:]
	}
	unknown := `,"unknown-\"{":{"models":{"m":{"description":"` + strings.Repeat(`a \" ] } é `, 6000) + `","cost":{"input":1,"output":2}}}}`
	doc := &endless{
		head: `{"openai":{"models":{` + priced(20) + `}}`, part: unknown, parts: 50_000_000 / len(unknown),
		tail: `,"anthropic":{"models":{"claude-next":{"cost":{"input":3,"output":15}},"claude-next":{"cost":{"input":300,"output":15}}}}}`,
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	before := stats.TotalAlloc
	p, err := (&Source{URL: "https://prices.example/p.json"}).Take(doc, &catalog.Update{}, now)
	if err != nil || p.Rows != 21 || p.Price("anthropic", "claude-next") != "3/15" {
		t.Fatalf("%+v, %v", p, err)
	}
	runtime.ReadMemStats(&stats)
	if took := stats.TotalAlloc - before; took > 4<<20 {
		t.Errorf("50 MB took %d bytes of memory", took)
	}
}

func TestFailureOfTheReaderIsTheError(t *testing.T) {
	broken := errors.New("broken")
	for head, want := range map[string]string{`{"openai":{"models":{`: "broken", `{"unknown":{"models":{`: "broken", `{`: "broken", "": "broken"} {
		s := Source{URL: "https://prices.example/p.json"}
		if _, err := s.Take(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), &catalog.Update{}, now); !errors.Is(err, broken) {
			t.Errorf("%s: %v, want %s", head, err, want)
		}
		if _, err := s.Take(strings.NewReader(head), &catalog.Update{}, now); err == nil || err.Error() != "it is not JSON" {
			t.Errorf("%s, which ends: %v", head, err)
		}
	}
}

func TestLimitsOfBuiltInModelsAreCorrected(t *testing.T) {
	old := catalog.Lookup("openai", "gpt-4o")[0] // 128,000 and 16,384
	raw := list(some(), `"models":{"openai":{"gpt-4o":{"kind":"llm","context_length":256000,"max_completion_tokens":16384},`+
		`"gpt-4.1":{"kind":"llm","context_length":2047},"gpt-5.6-cyber":{"kind":"llm","context_length":4000000,"max_completion_tokens":64000},"text-embedding-3-small":{"kind":"embedding","context_length":9000}}}`)
	p := take(t, raw, catalog.Update{})
	if want := "openai/gpt-4o\t256000\t\nopenai/gpt-5.6-cyber\t\t64000\n"; p.LimitText != want || p.Limits != 2 || p.RefusedModels != 2 || p.AddedModels != 0 {
		t.Errorf("%+v, want %q", p, want)
	}
	for _, m := range [...]catalog.Model{p.Lookup("openai", "gpt-4o")[0], p.Find("gpt-4o")[0].Model} {
		if m.Context != 256000 || m.MaxOutput != old.MaxOutput || m.Price != old.Price {
			t.Errorf("%+v", m)
		}
	}
	for _, m := range p.Models("openai") {
		if m.ID == "gpt-5.6-cyber" && (m.Context != 400000 || m.MaxOutput != 64000) {
			t.Errorf("%+v", m)
		}
	}
	dev := `{"openai":{"models":{"gpt-4o":{"limit":{"context":1000000,"output":16384},"cost":{"input":2.5,"output":10,"cache_read":1.25}}}}}`
	if d, err := read(strings.NewReader(dev)); err != nil || len(d.limits) != 1 || d.limits[0].context != 1_000_000 || d.limits[0].maxOutput != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

func FuzzTake(f *testing.F) {
	f.Add(list(with("openai", "gpt-5", "1/8/0.1 @flex>5=1/2 image@hd=3")))
	f.Add([]byte(`{"openai":{"models":{"gpt-5":{"cost":{"input":1.25,"output":1e9,"context_over_200k":{"input":1}}}}}}`))
	f.Add([]byte(`{"format":"weir-prices","version":1,"issuedAt":1e300,"prices":[{"openai":1}]}`))
	f.Add(withModels("openai", map[string]any{"gpt-next": map[string]any{"kind": "tts", "name": "é", "context_length": 1000, "capabilities": map[string]bool{"tools": true}}}))
	f.Add([]byte(`{"openai":{"models":{"gpt-next":{"modalities":{"input":["text"],"output":["audio","text"]},"limit":{"context":1e9,"output":1}}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := Source{URL: "https://prices.example/p.json"}
		p, err := s.Take(bytes.NewReader(raw), &catalog.Update{}, now)
		if err != nil {
			return
		}
		last := ""
		for line := range strings.Lines(p.Text) {
			name, price, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			alias, id, _ := strings.Cut(name, "/")
			if _, bad := catalog.ParsePrice(price); !ok || bad != nil || p.Price(alias, id) != catalog.Price(price) {
				t.Errorf("the line %q: %v", line, bad)
			}
			if name == last {
				t.Errorf("%s is there twice", name)
			}
			last = name
		}
		for _, wrong := range checkModels(p) {
			t.Error(wrong)
		}
	})
}
