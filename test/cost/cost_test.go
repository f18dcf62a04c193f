// Package cost counts what Cloudflare bills for each kind of work, and computes the
// bills of docs/guides/cost.md from it.
package cost

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/fake"
	"weir/internal/testgw/front"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

const document = "../../docs/guides/cost.md"

// billed are the columns of the counts and, with the CPU time and the duration of
// objects, the rows of the prices.
var billed = [...]string{"requests", "KV reads", "KV writes", "object requests", "rows read", "rows written", "log events"}

// counts are numbers of what is billed.
type counts [len(billed)]float64

// world is a gateway with one machine, which has one account.
type world struct {
	t *testing.T
	*front.Gateway
	id, key          string
	requests, alarms int
	refused          bool                    // by the upstream
	answered         int                     // by the upstream
	resets           int64                   // when its limits begin again, Unix seconds
	after            []func(context.Context) // the work after answers
}

const (
	answer = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
	chunk  = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	last   = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":20,"total_tokens":29}}` + "\n\ndata: [DONE]\n\n"
)

func newWorld(t *testing.T) *world {
	w := &world{t: t, Gateway: front.New(nil)}
	w.resets = w.Now().Add(24 * time.Hour).Unix()
	w.Meanwhile = w.work
	w.Answer = func(s *fake.Seen) fake.Answer {
		switch {
		case w.refused:
			return fake.Reply(429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`, httpmsg.Field{Name: "retry-after", Value: "2"})
		case strings.Contains(s.Body, `"stream":true`):
			return w.limited(fake.OK("text/event-stream", strings.Repeat(chunk, 20)+last))
		}
		return w.limited(fake.JSON(answer))
	}
	made := w.do(201, "POST", "/api/machines", front.AdminToken, `{}`)
	w.id, w.key = gjson.Get(made, "machineId").Str, gjson.Get(made, "apiKey").Str
	w.do(201, "POST", "/"+w.id+"/api/providers", front.AdminToken,
		`{"provider":"openai-compatible-0123abcd","name":"a","apiKey":"upstream-key","providerSpecificData":{"baseUrl":"http://up.example/v1","prefix":"up"}}`)
	for range 2 { // the second is told what the first has reported of limits
		w.call(false)
		w.pass(time.Minute) // until all of this is stored
	}
	return w
}

// limited adds what many providers say of the account's limits. Each call uses some
// of them.
func (w *world) limited(a fake.Answer) fake.Answer {
	w.answered++
	for _, unit := range [...]string{"requests-day", "tokens-minute"} {
		a.Header = append(a.Header, httpmsg.Field{Name: "x-ratelimit-limit-" + unit, Value: "10000"},
			httpmsg.Field{Name: "x-ratelimit-remaining-" + unit, Value: strconv.Itoa(10000 - w.answered%10000)},
			httpmsg.Field{Name: "x-ratelimit-reset-" + unit, Value: strconv.FormatInt(w.resets, 10)})
	}
	return a
}

// do serves a request and returns the answer. pass does the work after it.
func (w *world) do(status int, method, path, key, body string) string {
	w.t.Helper()
	w.requests++
	path, query, _ := strings.Cut(path, "?")
	r := &httpmsg.Request{
		Method: method, Path: path, Query: query, Origin: "http://gateway.example", Start: w.Now(), Length: int64(len(body)),
		Header: httpmsg.Header{{Name: "authorization", Value: "Bearer " + key}, {Name: "content-type", Value: "application/json"}},
	}
	if body != "" {
		r.Body = stream.FromString(body)
	}
	resp := w.App.Serve(context.Background(), r)
	var text []byte
	if resp.Body != nil {
		var err error
		if text, err = io.ReadAll(resp.Body); err != nil {
			w.t.Fatal(err)
		}
	}
	w.after = append(w.after, resp.After...)
	if resp.Status != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.Status, status, text)
	}
	return string(text)
}

func (w *world) call(stream bool) {
	w.t.Helper()
	w.do(200, "POST", "/v1/chat/completions", w.key, fmt.Sprintf(`{"model":"up/m","stream":%t,"messages":[{"role":"user","content":"Hello"}]}`, stream))
}

// work does the work after answers.
func (w *world) work() {
	for len(w.after) > 0 {
		after := w.after[0]
		w.after = w.after[1:]
		after(context.Background())
	}
}

// pass lets time pass, in which the work after answers is done and alarms run. That
// work may pause, which moves the clock; the others go on meanwhile.
func (w *world) pass(d time.Duration) {
	end := w.Now().Add(d)
	w.work()
	for {
		w.alarms += w.Objects.Alarms(context.Background())
		left := end.Sub(w.Now())
		if left <= 0 {
			return
		}
		w.Clock.Add(min(left, time.Second))
	}
}

// second makes ten calls within a second, which end before what follows them begins.
func (w *world) second(stream bool) {
	for range 10 {
		w.call(stream)
	}
	w.pass(time.Second)
}

func (w *world) count() counts {
	read, written := w.Objects.Rows()
	c := counts{}
	for i, n := range [...]int{w.requests, len(w.KV.Reads()), len(w.KV.Writes()), len(w.Objects.Ops) + w.alarms, read, written, len(w.Log)} {
		c[i] = float64(n)
	}
	return c
}

// classes are the kinds of work. do does some of them at once, and is repeated a
// number of times; the counts are the average, with what is stored up to a minute
// later.
var classes = [...]struct {
	name        string
	some, times int
	do          func(w *world)
}{
	{"call, 10 a second", 10, 100, func(w *world) { w.second(false) }},
	{"stream, 10 a second", 10, 100, func(w *world) { w.second(true) }},
	{"call after 10 minutes", 1, 100, func(w *world) { w.pass(10 * time.Minute); w.call(false) }},
	{"first call of an isolate", 1, 100, func(w *world) { w.pass(10 * time.Minute); w.Restart(); w.call(false) }},
	{"cooldown and success 3 s later", 1, 100, func(w *world) {
		w.refused = true
		w.do(429, "POST", "/v1/chat/completions", w.key, `{"model":"up/m","messages":[{"role":"user","content":"Hello"}]}`)
		w.refused = false
		w.pass(3 * time.Second)
		w.call(false)
		w.pass(time.Second)
	}},
	{"change of the configuration", 1, 100, func(w *world) {
		w.do(200, "PUT", "/"+w.id+"/api/models/alias", front.AdminToken, fmt.Sprintf(`{"alias":"a","model":"up/m%d"}`, w.requests))
		w.pass(time.Minute)
	}},
	{"hour with the Requests page open", 1, 1, func(w *world) {
		for range 720 { // it asks every 5 s, see worker/dashboard/src/pages/requests.tsx
			w.do(200, "GET", "/"+w.id+"/api/requests?limit=50", front.AdminToken, "")
			w.pass(5 * time.Second)
		}
	}},
	{"day of a machine without calls", 1, 10, func(w *world) { w.pass(24 * time.Hour) }},
	{"call, 10 a second, with a budget", 10, 100, func(w *world) { w.second(false) }},
	{"call after 10 minutes, with a budget", 1, 100, func(w *world) { w.pass(10 * time.Minute); w.call(false) }},
	{"call, 10 a second, captured", 10, 100, func(w *world) { w.second(false) }},
}

// measure returns the counts of all classes.
func measure(t *testing.T) []counts {
	var all []counts
	for _, class := range classes {
		w := newWorld(t)
		if strings.HasSuffix(class.name, "with a budget") {
			w.do(201, "POST", "/"+w.id+"/api/budgets", front.AdminToken, `{"name":"b","unit":"requests","limit":1000000,"window":"month"}`)
			w.call(false)
			w.pass(2 * time.Minute)
		}
		if strings.HasSuffix(class.name, "captured") {
			w.do(200, "PATCH", "/"+w.id+"/api/settings", front.AdminToken, `{"capturePercent":100}`)
			w.pass(2 * time.Minute)
		}
		before := w.count()
		for range class.times {
			class.do(w)
		}
		w.pass(time.Minute)
		c := w.count()
		for i := range c {
			c[i] = (c[i] - before[i]) / float64(class.some*class.times)
		}
		all = append(all, c)
	}
	return all
}

// table returns the rows under the heading of a table in the document, cell by cell.
func table(t *testing.T, text, heading string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", document, heading)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		switch {
		case strings.HasPrefix(line, "|"):
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		case len(rows) > 0 || strings.HasPrefix(line, "#"):
			if len(rows) < 3 {
				t.Fatalf("no table under %q", heading)
			}
			return rows[2:]
		}
	}
	return rows[min(2, len(rows)):]
}

// number reads "1,000", "$0.30", "0.4 M" or "5 ms".
func number(t *testing.T, cell string) float64 {
	t.Helper()
	text, million := strings.CutSuffix(cell, " M")
	text = strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(text, ",", ""), "$"), " ms")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%q is no number", cell)
	}
	if million {
		n *= 1e6
	}
	return n
}

// short writes a count with two decimals, if it has any.
func short(n float64) string {
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// objectMemory is what an object is billed for, in GB, whatever it uses.
const objectMemory = 0.128

// replace puts a table under a heading in place of the one that is there.
func replace(text, heading, table string) string {
	at := regexp.MustCompile(`(?m)(^` + regexp.QuoteMeta(heading) + `\n(?:[^|#\n].*\n|\n)*)(?:\|.*\n)+`)
	return at.ReplaceAllStringFunc(text, func(old string) string { return at.FindStringSubmatch(old)[1] + table })
}

// TestGuideStatesWhatIsBilled compares the tables of counts and bills with what is
// counted, and with what follows from the other tables. GOLDEN=update rewrites both.
func TestGuideStatesWhatIsBilled(t *testing.T) {
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	measured := measure(t)
	// Only a change of the configuration is published, a busy machine writes a row a
	// second, and one that is not two for a call.
	const kvWrites, rowsWritten = 2, 5
	for i, most := range [len(classes)]float64{0.1, 0.1, 2, 2} {
		if n := measured[i][rowsWritten]; most > 0 && n > most {
			t.Errorf("%s: %.2f rows are written, more than %g", classes[i].name, n, most)
		}
		if n := measured[i][kvWrites]; n > 0 && classes[i].name != "change of the configuration" {
			t.Errorf("%s: %.2f writes to KV", classes[i].name, n)
		}
	}

	var b strings.Builder
	b.WriteString("| For each | " + strings.Join(billed[:], " | ") + " |\n|---|" + strings.Repeat("---|", len(billed)) + "\n")
	for i, class := range classes {
		b.WriteString("| " + class.name)
		for _, n := range measured[i] {
			b.WriteString(" | " + short(n))
		}
		b.WriteString(" |\n")
	}
	tables := map[string]string{"## What is counted": b.String()}

	// A month is a column of the table of months.
	months := table(t, text, "## Two months")
	assumed := map[string][]string{}
	for _, row := range table(t, text, "## What is assumed") {
		assumed[row[0]] = row
	}
	objectMs := number(t, assumed["an object's request"][1])
	var bills [][]float64
	for column := 1; column <= 2; column++ {
		used := map[string]float64{}
		for i, class := range classes {
			if months[i][0] != class.name {
				t.Fatalf("row %d of the months is %q, want %q", i, months[i][0], class.name)
			}
			n := number(t, months[i][column])
			for j, name := range billed {
				used[name] += n * measured[i][j]
			}
			used["CPU, ms"] += n * number(t, assumed[class.name][1])
		}
		used["object duration, GB-s"] = used["object requests"] * objectMs / 1000 * objectMemory
		var bill []float64
		for _, price := range table(t, text, "## Prices") {
			n, ok := used[price[0]]
			if !ok {
				t.Fatalf("a price of %q, which nothing is counted of", price[0])
			}
			delete(used, price[0])
			bill = append(bill, max(0, n-number(t, price[1]))/1e6*number(t, price[2]))
		}
		if len(used) > 0 {
			t.Fatalf("no price of %v", used)
		}
		bills = append(bills, bill)
	}
	b.Reset()
	b.WriteString("| | 1 M calls | 100 M calls |\n|---|---|---|\n| plan | $5.00 | $5.00 |\n")
	sums := [2]float64{5, 5}
	for i, price := range table(t, text, "## Prices") {
		fmt.Fprintf(&b, "| %s | $%.2f | $%.2f |\n", price[0], bills[0][i], bills[1][i])
		sums[0], sums[1] = sums[0]+bills[0][i], sums[1]+bills[1][i]
	}
	fmt.Fprintf(&b, "| **a month** | **$%.2f** | **$%.2f** |\n", sums[0], sums[1])
	tables["## The bills"] = b.String()

	want := text
	for heading, table := range tables {
		want = replace(want, heading, table)
	}
	if want == text {
		return
	}
	if os.Getenv("GOLDEN") == "update" {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, new := strings.Split(text, "\n"), strings.Split(want, "\n")
	for i := range min(len(old), len(new)) {
		if old[i] != new[i] {
			t.Errorf("%s:%d:\n\t%s\nis now\n\t%s", document, i+1, old[i], new[i])
		}
	}
	t.Error("read the difference as code; GOLDEN=update writes it")
}
