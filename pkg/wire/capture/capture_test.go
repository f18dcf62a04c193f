package capture

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/pkg/wire/memory"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
)

const secretKey = "sk-proj-0123456789abcdefghij"

func mask(text string) string {
	return redact.Patterns(redact.New("live-value-of-the-account").String(text))
}

// document returns what is stored of two bodies.
func document(t *testing.T, c *Collector, request, contentType string, answer io.ReadCloser) Document {
	t.Helper()
	b := c.Begin("machine")
	b.Request("application/json; charset=utf-8", []byte(request))
	if sent := b.Answer(contentType, answer); sent != nil {
		io.Copy(io.Discard, sent)
		sent.Close()
	}
	if !b.Ready() {
		t.Fatal("nothing is stored")
	}
	d, err := Read(b.Document(mask))
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	b.Release()
	if c.collected != 0 || c.Memory != nil && c.Memory.Used() != 0 {
		t.Errorf("%d bytes are left, %d of the budget", c.collected, c.Memory.Used())
	}
	return d
}

func TestBodiesAreCollected(t *testing.T) {
	c := &Collector{Memory: &memory.Budget{}}
	for _, tt := range []struct {
		name, contentType string
		answer            io.ReadCloser
		want              Part
	}{
		{"in memory", "application/json", stream.FromString(`{"a":1}`), Part{"application/json", 7, false, false, 7, `{"a":1}`}},
		{"in parts", "application/json", stream.FromParts([][]byte{[]byte("ab"), []byte("c")}), Part{"application/json", 3, false, false, 3, "abc"}},
		{"watched", "text/event-stream", &stream.Through{Src: stream.FromString("data: a\n\n"), T: tailed{tail: "data: b\n\n"}, Watch: true}, Part{"text/event-stream", 18, false, false, 18, "data: a\n\ndata: b\n\n"}},
		{"transformed", "text/event-stream", &stream.Through{Src: stream.FromString("data: a\n\n"), T: upper{}}, Part{"text/event-stream", 13, false, false, 13, "DATA: A\n\nEND."}},
		{"audio", "audio/mpeg", stream.FromString("\x00\x01"), Part{"audio/mpeg", 2, false, true, 0, ""}},
		{"the host's alone", "application/json", &stream.Through{Src: stream.FromString("{}"), T: tailed{}, Cut: true}, Part{"application/json", 0, false, true, 0, ""}},
		{"of another kind", "text/plain", io.NopCloser(strings.NewReader("a")), Part{"text/plain", 0, false, true, 0, ""}},
		{"no body", "", nil, Part{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := document(t, c, `{"model":"m"}`, tt.contentType, tt.answer)
			if d.Answer != tt.want {
				t.Errorf("got %+v, want %+v", d.Answer, tt.want)
			}
			if want := (Part{"application/json", 13, false, false, 13, `{"model":"m"}`}); d.Request != want {
				t.Errorf("request: got %+v, want %+v", d.Request, want)
			}
		})
	}
}

// tailed is a transform that ends a stream with a text.
type tailed struct {
	stream.Plain
	tail string
}

func (tailed) Push(chunk, out []byte) []byte    { return append(out, chunk...) }
func (t tailed) End(_ error, out []byte) []byte { return append(out, t.tail...) }

// upper is a transform.
type upper struct{ stream.Plain }

func (upper) Push(chunk, out []byte) []byte {
	return append(out, strings.ToUpper(string(chunk))...)
}
func (upper) End(_ error, out []byte) []byte { return append(out, "END."...) }

// beating is a transform with heartbeats.
type beating struct{ upper }

func (beating) Beat(out []byte) []byte { return append(out, ":\n\n"...) }

func TestHeartbeatsAreNotCollected(t *testing.T) {
	b := (&Collector{}).Begin("machine")
	through := &stream.Through{Src: stream.FromString("a"), T: beating{}}
	b.Answer("text/event-stream", through)
	if string(through.T.Beat(nil)) != ":\n\n" {
		t.Error("the stream has no heartbeats")
	}
	io.Copy(io.Discard, through)
	if got := string(b.answer.data); got != "AEND." {
		t.Errorf("got %q", got)
	}
	plain := &stream.Through{Src: stream.FromString("a"), T: upper{}}
	b.Answer("text/event-stream", plain)
	if len(plain.T.Beat(nil)) != 0 {
		t.Error("a stream without heartbeats has some")
	}
}

func TestClientThatLeavesEndsTheText(t *testing.T) {
	b := (&Collector{}).Begin("machine")
	src := &stream.Prefix{Head: []byte("data"), Rest: stream.FromString(": a\n\n")}
	w := &stream.Through{Src: src, T: tailed{tail: "data: b\n\n"}, Watch: true}
	b.Answer("text/event-stream", w)
	w.Read(make([]byte, 4))
	w.Close()
	if got := string(b.answer.data); got != "data" {
		t.Errorf("got %q", got)
	}
}

func TestCredentialsAreMasked(t *testing.T) {
	deltas := func(format string, pieces ...string) string {
		var b strings.Builder
		for _, p := range pieces {
			fmt.Fprintf(&b, "data: "+format+"\n\n", p)
		}
		return b.String() + "data: [DONE]\n\n"
	}
	pieces := []string{"key: sk-", "proj-01234", "56789abc", "defghij", " and more"}
	for _, tt := range []struct{ name, text, keeps string }{
		{"whole", `{"content":"use ` + secretKey + ` now"}`, "use *** now"},
		{"header", `{"content":"Authorization: Bearer abcdef0123456789"}`, `"Authorization: Bearer ***"`},
		{"of the account", `{"content":"live-value-of-the-account"}`, `{"content":"***"}`},
		{"of the account in base64", `{"content":"bGl2ZS12YWx1ZS1vZi10aGUtYWNjb3VudA=="}`, "***"},
		{"in the deltas of a chat", deltas(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, pieces...), `"content":"key: *** and more"`},
		{"in the deltas of messages", deltas(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":%q}}`, pieces...), `"text":"key: *** and more"`},
		{"in the deltas of responses", deltas(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%q}`, pieces...), `"delta":"key: *** and more"`},
		{"in the arguments of a tool", deltas(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":%q}}]}}]}`, `{"k":"sk-`, `proj-0123456789`, `abcdefghij"}`), `{\"k\":\"***\"}`},
		{"in the array of a Gemini client", `[{"candidates":[{"content":{"parts":[{"text":"sk-proj-0123"}]}}]}` + "\n,\r\n" + `{"candidates":[{"content":{"parts":[{"text":"456789abcdefghij"}]}}]}]`, `"text":"***"`},
		{"after a line end", `{"content":"the key:\n` + secretKey + `\n"}`, `the key:\n***\n`},
		{"after a line end of JSON in a string", `{"content":"{\"a\":\"b\\n` + secretKey + `\"}"}`, `b\\n***\"}`},
		{"after an escape", `{"content":"\u00e9` + secretKey + ` in ?q=a%20` + secretKey + `"}`, `\u00e9*** in ?q=a%20***`},
		{"with escapes", `{"content":"a\n\u0073k-proj\u002d0123456789abcdefghij"}`, `"a\n***"`},
		{"with escaped slashes", `{"content":"postgres:\/\/me:proj-0123@db\/x"}`, `"postgres://***@db/x"`},
		{"with escapes in an event", "data: {\"d\":\"\\u0073k-proj-0123456789abcdefghij\"}\n\n", `{"d":"***"}`},
		{"in a stream that breaks off", `data: {"d":"sk-proj-0123"}` + "\n\n" + `data: {"d":"456789abcdefghij`, `{"d":"***"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := maskEvents(tt.text, len(tt.text), mask)
			for _, part := range []string{secretKey, "proj-0123", "456789abc", "abcdef0123456789", "live-value", "bGl2ZS12"} {
				if strings.Contains(got, part) {
					t.Errorf("has %q: %s", part, got)
				}
			}
			if !strings.Contains(got, tt.keeps) {
				t.Errorf("lacks %q: %s", tt.keeps, got)
			}
		})
	}
}

// Parts of one answer that arrive in turns are not mixed up.
func TestPartsAreToldApart(t *testing.T) {
	text := `data: {"choices":[{"index":0,"delta":{"content":"sk-proj-0123"}}]}
data: {"choices":[{"delta":{"content":"one, "},"index":1}]}
data: {"choices":[{"index":0,"delta":{"content":"456789abcdefghij"}}]}
data: {"choices":[{"delta":{"content":"two"},"index":1}]}
`
	got := maskEvents(text, len(text), mask)
	if strings.Contains(got, "0123") || strings.Contains(got, "abcdefghij") || !strings.Contains(got, `"one, "`) || !strings.Contains(got, `"two"`) {
		t.Error(got)
	}
}

func TestEventsWithoutCredentialsStayAsTheyAre(t *testing.T) {
	text := "event: a\r\ndata: {\"a\" : \"\\u00e9\\n\", \"b\":[1,{\"c\":\"d\"}]}\r\n\r\ndata: no json \"\n\n"
	if got := maskEvents(text, len(text), mask); got != text {
		t.Errorf("got %q", got)
	}
}

func TestLargeBodiesAreCut(t *testing.T) {
	c := &Collector{Memory: &memory.Budget{}}
	for _, n := range []int{MaxBody - 1, MaxBody, MaxBody + 1, MaxBody + overlap, MaxBody + overlap + 1, 8 << 20} {
		d := document(t, c, strings.Repeat("a ", n/2)+"a ", "text/plain", stream.FromString(strings.Repeat("é", n/2)))
		for _, p := range []Part{d.Request, d.Answer} {
			if cut := p.Bytes > int64(len(p.Text)); p.Cut != cut || len(p.Text) > MaxBody || p.Bytes <= MaxBody && cut || !utf8.ValidString(p.Text) {
				t.Errorf("%d bytes: %d of %d are stored, cut is %t", n, len(p.Text), p.Bytes, p.Cut)
			}
			if p.Cut && len(p.Text) < MaxBody-overlap {
				t.Errorf("%d bytes: only %d are stored", n, len(p.Text))
			}
		}
	}
}

// A credential at the end of what is collected is cut, and so not recognized.
func TestCutLeavesNoPartOfACredential(t *testing.T) {
	c := &Collector{}
	const value = "live-value-of-the-account"
	for _, end := range []int{MaxBody, MaxBody + overlap} {
		for before := range len(value) + 2 {
			text := strings.Repeat("a ", end/2)[:end-before] + value + strings.Repeat(" b", overlap)
			d := document(t, c, text, "", nil)
			if i := strings.Index(d.Request.Text, "li"); i >= 0 {
				t.Fatalf("%d before %d: ends with %q", before, end, d.Request.Text[i:])
			}
		}
	}
}

// Nor does one whose pieces are joined because of another one.
func TestCutLeavesNoPartOfACredentialInPieces(t *testing.T) {
	const value = "live-value-of-the-account"
	event := func(text string) string { return fmt.Sprintf("data: {\"d\":%q}\n\n", text) }
	head := event("key: ") + event(value[:9]) + event(value[9:])
	for before := 0; before < 3*len(event(value[:9])); before += 7 {
		fill := (MaxBody+overlap-len(head)-before)/len(event("pad ")) - 1
		text := head + strings.Repeat(event("pad "), fill)
		text += event(strings.Repeat("p", MaxBody+overlap-len(text)-before-len(event(""))))
		text += event(value[:9]) + event(value[9:18]) + event(value[18:]) + strings.Repeat(event("end "), 100)
		d := document(t, &Collector{}, "{}", "text/event-stream", stream.FromString(text))
		if got := d.Answer.Text; !d.Answer.Cut || !strings.Contains(got, "key: ***pad") || strings.Contains(got, "li") {
			t.Fatalf("%d before: cut is %t, %d bytes are stored, the account's key is there: %t", before, d.Answer.Cut, len(got), strings.Contains(got, "li"))
		}
	}
}

// A document fits into a row of an object, sealed.
func TestDocumentFitsIntoRow(t *testing.T) {
	b := (&Collector{}).Begin("machine")
	long := strings.Repeat("\xff\x01", MaxBody)
	b.Request("application/json", []byte(long))
	b.Answer("text/plain", stream.FromString(long))
	if n := len(b.Document(mask)); n*4/3+1024 > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

func TestCaptureThatFindsNoMemoryIsDropped(t *testing.T) {
	budget := &memory.Budget{Max: 1 << 20}
	c := &Collector{Memory: budget}
	b := c.Begin("machine")
	b.Request("application/json", make([]byte, 100<<10))
	if sent := b.Answer("text/plain", stream.FromBytes(make([]byte, 8<<20))); sent == nil {
		t.Error("the answer is not sent")
	}
	if b.Ready() || c.collected != 0 || budget.Used() != 0 {
		t.Errorf("%d bytes are collected, %d of the budget in use", c.collected, budget.Used())
	}
	if next := c.Begin("machine"); !next.Ready() {
		t.Error("the next capture finds no memory")
	}
}

func TestCapturesAreBoundedTogether(t *testing.T) {
	c := &Collector{Memory: &memory.Budget{}}
	var all []*Bodies
	stored := 0
	for range 200 {
		b := c.Begin("machine")
		b.Request("application/json", make([]byte, MaxBody))
		all = append(all, b)
	}
	if c.collected > maxCollected {
		t.Errorf("%d bytes are collected", c.collected)
	}
	for _, b := range all {
		if b.Ready() {
			stored++
		}
		b.Release()
	}
	if stored == 0 || stored == 200 || c.collected != 0 || c.Memory.Used() != 0 {
		t.Errorf("%d stored, %d bytes left, %d of the budget", stored, c.collected, c.Memory.Used())
	}
}

func TestReadRefusesOtherTexts(t *testing.T) {
	for _, raw := range []string{"", "{", "{}", "null\nabc", `{"request":{"length":4},"answer":{"length":0}}` + "\nabc", `{"request":{"length":-1},"answer":{"length":4}}` + "\nabc"} {
		if d, err := Read([]byte(raw)); err == nil && len(d.Request.Text)+len(d.Answer.Text) > 0 {
			t.Errorf("%q: %+v", raw, d)
		}
	}
}

// A call without a capture passes a nil Bodies.
func TestNilBodiesCollectNothing(t *testing.T) {
	var b *Bodies
	b.Request("", []byte("a"))
	body := stream.FromString("a")
	if b.Answer("", body) != body || b.Ready() {
		t.Error("a nil Bodies does something")
	}
	b.Release()
}

func FuzzMaskEvents(f *testing.F) {
	for _, s := range []string{
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"sk-proj-0123\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"456789abcdefghij\"}}]}\n\n",
		`[{"a":"sk-proj-0123"},{"a":"456789abcdefghij"}]`, "data: \"\\", "data: {\"a\":\"\\ud83d\"}", "[[[{\"a\\\":\"", "data:", "\ndata:\"a\"\ndata:\"b\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := maskEvents(text, len(text), func(s string) string { return s })
		if got != text {
			t.Errorf("%q is changed: %q", text, got)
		}
		// With everything masked, no edit overlaps another or ends outside the text.
		maskEvents(text, len(text)/2, func(string) string { return "***" })
		b := (&Collector{}).Begin("machine")
		b.Request("", []byte(text))
		if d, err := Read(b.Document(mask)); err != nil || !utf8.ValidString(d.Request.Text) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// The work is linear in the text: no name, and no value, is read for each string.
func TestMaskEventsIsLinear(t *testing.T) {
	for _, tt := range []struct{ name, one, many string }{
		{"strings under a long name", `data: {"` + strings.Repeat("n", 1<<16) + `":[`, `"a",`},
		{"events", "", "data: {\"a\":\"b\"}\n\n"},
		{"depth", `data: `, `{"a":`},
		{"open strings", "data: ", `"`},
		{"elements", "[", `{"a":"b"},`},
	} {
		work := func(n int) int {
			steps := 0
			text := tt.one + strings.Repeat(tt.many, n)
			maskEvents(text, len(text), func(s string) string { steps += len(s); return s })
			return steps
		}
		if a, b := work(1000), work(4000); b > 5*a+1<<18 {
			t.Errorf("%s: %d, then %d bytes are masked", tt.name, a, b)
		}
	}
}
