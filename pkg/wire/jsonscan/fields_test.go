package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func valid(doc string) error {
	var c Cursor
	c.Reset([]byte(doc))
	c.Skip()
	return c.End()
}

func TestInvalidJSONIsRefused(t *testing.T) {
	for _, doc := range []string{
		"", " ", "{", "}", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}", "{'a':1}",
		"{\"a\":1 \"b\":2}", "{\"a\" 1}", "{\"a\":1}}", "{} {}", "{}x", "[]]", "nul", "nulll", "truE", "tru", "fals", "NaN", "Infinity", "-Infinity",
		"-", "+1", "01", "-01", "1.", ".5", "1.e3", "1e", "1e+", "0x10", "1_000", "[1,02]", "[1,2.]", "[1,-]", "[1.5e]", "00",
		"\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u", "\"a\nb\"", "\"a\tb\"", "\"\x00\"", "\"aaaaaaaa\x1f\"",
		"\xef\xbb\xbf{}", "\xfe\xff", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"aaaaaaaaaa\xe2\x82\"",
		"{\"\xff\":1}", "[1,\xa0 2]", "\u00a01", "/*c*/1", "1//c", "{\"a\":1,2}", "{\"a\":1,\"b\"}", "[\"a\":1]", "{[1]:2}", "{1:2}", "[1}", "{\"a\":[}]",
		"\x0c1", "\v1",
	} {
		if valid(doc) == nil {
			t.Errorf("%q is accepted", doc)
		}
		if json.Valid([]byte(doc)) && utf8.ValidString(doc) {
			t.Errorf("%q is valid JSON", doc)
		}
	}
}

func TestValidJSONIsAccepted(t *testing.T) {
	for _, doc := range []string{
		"1", "-0", "0", "0.0", "-0.5e-10", "1E+400", "123456789012345678901234567890", "\"\"", "\" \"", "null", "true", "false", " [ ] ", "{ }",
		"[1,2,3]", "[ 1 , 2 ]", "[1,\"a\",2]", "[[],[[]],{}]", "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":1}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\"",
		"\"\\ud83d\\ude00\"", "\"\\ud800\"", "\"\x7f\"", "\"é☃😀\"", "\r\n\t 1 \r\n\t", "{\"a\":1,\"a\":2}", "{\"\":1}", "[1.5,2.25e3,-7,0]",
		"[12345678.12345678,-1234567890123456]",
	} {
		if err := valid(doc); err != nil {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

func TestLimits(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name string
		doc  string
		ok   bool
	}{
		{"depth_128", nest(128), true},
		{"depth_129", nest(129), false},
		{"depth_10k", nest(10_000), false},
		{"depth_10m_open", strings.Repeat("[", 10<<20), false},
		{"depth_of_objects", strings.Repeat(`{"a":`, 129) + "1" + strings.Repeat("}", 129), false},
		{"values_over", "[" + strings.Repeat("1,", MaxTokens) + "1]", false},
		{"values_at", "[" + strings.Repeat("1,", MaxTokens-2) + "1]", true},
		{"objects_8m", "[" + strings.Repeat(`{"a":0},`, 1<<20) + "0]", false},
		{"digits_8m", strings.Repeat("1", 8<<20), true},
		{"string_8m", `"` + strings.Repeat("a", 8<<20) + `"`, true},
	}
	for _, tt := range tests {
		if err := valid(tt.doc); (err == nil) != tt.ok {
			t.Errorf("%s: %v, want accepted %v", tt.name, err, tt.ok)
		}
	}
}

func TestReadFindsTheFields(t *testing.T) {
	doc := ` { "x" : [1,{"model":"inner"}] , "mod\u0065l" : "a\/\ud83d\ude00b" , "Models":"no","input": [ "a" , 2 ] ,"n":7,"t":true,"z":null,"streams":1, "big":9007199254740993 } `
	s, err := Read([]byte(doc), "model", "input", "n", "t", "z", "stream", "big", "gone")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok, err := s.String("model"); got != "a/😀b" || !ok || err != nil {
		t.Errorf("model: %q %v %v", got, ok, err)
	}
	if got := string(s.Raw("input")); got != `[ "a" , 2 ]` {
		t.Errorf("input: %q", got)
	}
	if n, ok, err := s.Int("n", 1, 7); n != 7 || !ok || err != nil {
		t.Errorf("n: %d %v %v", n, ok, err)
	}
	if _, ok, err := s.Int("n", 1, 6); !ok || !errors.Is(err, ErrType) {
		t.Errorf("n out of range: %v %v", ok, err)
	}
	if n, _, err := s.Int("big", 0, math.MaxInt64); n != 9007199254740993 || err != nil {
		t.Errorf("big: %d %v", n, err)
	}
	if b, ok, err := s.Bool("t"); !b || !ok || err != nil {
		t.Errorf("t: %v %v %v", b, ok, err)
	}
	if _, ok, err := s.Bool("z"); ok || err != nil || s.Has("z") || s.Get("z").Kind != Null {
		t.Errorf("z: %v %v", ok, err)
	}
	if s.Has("stream") || s.Has("gone") || s.Raw("gone") != nil || !s.Has("n") {
		t.Error("Has disagrees with the document")
	}
	if _, _, err := s.String("n"); !errors.Is(err, ErrType) {
		t.Errorf("a number as string: %v", err)
	}
	for _, bad := range []string{"1.0", "1e3", strings.Repeat("1", 65), "99999999999999999999", `"1"`, "-1"} {
		s, err := Read([]byte(`{"n":`+bad+`}`), "n")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Int("n", 0, math.MaxInt64); !errors.Is(err, ErrType) {
			t.Errorf("%.10s as integer: %v", bad, err)
		}
	}
}

func TestReadRefusesAmbiguousDocuments(t *testing.T) {
	tests := []struct{ name, doc, field string }{
		{"duplicate", `{"model":"a","model":"b"}`, "model"},
		{"duplicate_after_unescaping", `{"model":"a","mo\u0064el":"b"}`, "model"},
		{"duplicate_null", `{"model":null,"model":"b"}`, "model"},
		{"other_case", `{"model":"a","Model":"b"}`, "model"},
		{"other_case_alone", `{"MODEL":"b"}`, "model"},
		{"other_case_before", `{"mOdel":1,"model":"a"}`, "model"},
		{"other_case_escaped", `{"model":"a","\u004dodel":"b"}`, "model"},
		{"other_case_of_stream", `{"model":"a","Stream":true}`, "stream"},
		{"long_s_of_stream", `{"model":"a","ſtream":true}`, "stream"},
		{"long_s_of_stream_escaped", `{"model":"a","\u017ftream":true}`, "stream"},
		{"lone_high", `{"model":"a\ud800"}`, "model"},
		{"lone_low", `{"model":"\udc00a"}`, "model"},
		{"reversed_pair", `{"model":"\ude00\ud83d"}`, "model"},
		{"lone_in_array", `{"model":["a",{"b":"\ud83dx"}]}`, "model"},
		{"not_an_object", `["model"]`, ""},
		{"bom", "\xef\xbb\xbf{\"model\":\"a\"}", ""},
		{"trailing", `{"model":"a"}{}`, ""},
		{"not_utf8_elsewhere", "{\"model\":\"a\",\"x\":\"\xff\"}", ""},
		{"cut", `{"model":"a"`, ""},
		{"empty", ``, ""},
	}
	for _, tt := range tests {
		_, err := Read([]byte(tt.doc), "model")
		var e *Error
		if !errors.As(err, &e) || e.Field != tt.field {
			t.Errorf("%s: got %v, want an error about %q", tt.name, err, tt.field)
		}
	}
	for _, ok := range []string{`{"x":1,"x":2,"model":"a"}`, `{"x":"\ud800","model":"a"}`, `{"\ud800":1,"model":"a"}`, `{"Models":1,"model":"a","mode":2,"streams":1,"x":{"Model":1}}`} {
		if _, err := Read([]byte(ok), "model"); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	if _, err := Read([]byte(`{"Model":"an answer's"}`), "usage"); err != nil {
		t.Errorf("a document whose model is not wanted: %v", err)
	}
}

func TestSpliceReplacesOnlyTheSpan(t *testing.T) {
	doc := []byte(`{"seed":9007199254740993,"model":"a","x":0.1000,"y":1e400}`)
	s, err := Read(doc, "model")
	if err != nil {
		t.Fatal(err)
	}
	got := Splice(doc, s.Get("model").Span, Quote(nil, "b\"\n\u2028\x01"))
	want := `{"seed":9007199254740993,"model":"b\"\n` + "\u2028" + `\u0001","x":0.1000,"y":1e400}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !bytes.Contains(doc, []byte(`"model":"a"`)) {
		t.Error("the original changed")
	}
}

func TestQuoteRoundTrip(t *testing.T) {
	for _, s := range []string{"", "a", "é😀\u2028", "\x00\x1f\"\\/\b\f\n\r\t", "a\xffb", strings.Repeat("x\n", 50)} {
		var back string
		if err := json.Unmarshal(Quote(nil, s), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q: %q %v", s, back, err)
		}
	}
}

func TestNumbersOfAVector(t *testing.T) {
	tests := []struct {
		doc      string
		n        int
		integers bool
		ok       bool
		err      bool
	}{
		{"[]", 0, true, true, false},
		{"[1,2,3]", 3, true, true, false},
		{"[ 1 , -2 ]", 2, true, true, false},
		{"[1,2.0]", 2, false, true, false},
		{"[1e3]", 1, false, true, false},
		{"[1,\"a\"]", 1, false, false, false},
		{"[[1]]", 0, false, false, false},
		{"[1,null]", 1, false, false, false},
		{"[1,]", 1, false, false, true},
		{"[1", 1, true, false, true},
		{"[1,01]", 1, false, false, true},
	}
	for _, tt := range tests {
		var c Cursor
		c.Reset([]byte(tt.doc))
		n, ints, ok := c.Numbers()
		if ok != tt.ok || ok && (n != tt.n || ints != tt.integers) {
			t.Errorf("%s: %d %v %v, want %+v", tt.doc, n, ints, ok, tt)
		}
		if !ok && !tt.err {
			continue // the rest has not been consumed
		}
		if err := c.End(); (err != nil) != tt.err {
			t.Errorf("%s: error %v, want %v", tt.doc, err, tt.err)
		}
	}
}

// oracle walks with encoding/json: the depth and number of tokens of a valid
// document.
func oracle(doc []byte) (depth, tokens int) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	for d := 0; ; {
		tok, err := dec.Token()
		if err != nil {
			return depth, tokens
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			d++
			depth = max(depth, d)
			tokens++
		case json.Delim('}'), json.Delim(']'):
			d--
		default:
			tokens++
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"model":"a","input":["x",[1,2]],"n":1}`, `{"mod\u0065l":"\ud83d\ude00"}`, `[1.5,-2e9,0]`, `{"model":"\ud800"}`,
		`{"a":{"model":1},"model":2,"model":3}`, `"\u00e9é"`, ` {"input" : "aaaaaaaaaaaaaaaa\\" } `, `{"a":1,2}`, "{\"\xff\":1}",
		strings.Repeat("[", 130) + strings.Repeat("]", 130), `{"input":[123456789,0.12345678901234567,1e-7]}`, "\xef\xbb\xbf{}",
		`{"input":"` + strings.Repeat("é☃😀x", 20) + `","model":"` + strings.Repeat("0123456789", 20) + `\n"}`,
		"[\n          1.25,\n          -3, 12345678901234567890.123456789012345e+10 ,0]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		good := json.Valid(doc) && utf8.Valid(doc)
		err := valid(string(doc))
		if good && err != nil {
			if depth, tokens := oracle(doc); depth <= MaxDepth && tokens <= MaxTokens {
				t.Fatalf("%q: %v", doc, err)
			}
		}
		if !good && err == nil {
			t.Fatalf("%q is accepted", doc)
		}
		checkNumbers(t, doc)
		s, err := Read(doc, "model", "input")
		if err != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(doc, &m); err != nil {
			t.Fatalf("%q read as an object: %v", doc, err)
		}
		for _, name := range []string{"model", "input"} {
			if raw := s.Raw(name); !bytes.Equal(raw, m[name]) {
				t.Fatalf("%q: %s is %q, want %q", doc, name, raw, m[name])
			}
			if s.Get(name).Kind == String {
				var want string
				if err := json.Unmarshal(m[name], &want); err != nil {
					t.Fatal(err)
				}
				if got, _, _ := s.String(name); got != want {
					t.Fatalf("%q: %s is %q, want %q", doc, name, got, want)
				}
			}
			if v := s.Get(name); v.Kind != Absent && !json.Valid(Splice(doc, v.Span, []byte(`"x"`))) {
				t.Fatalf("%q: not JSON after a splice", doc)
			}
		}
	})
}

var sink int

func bench(b *testing.B, doc []byte) {
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	names := []string{"model", "input", "encoding_format", "dimensions"}
	for b.Loop() {
		s, err := Read(doc, names...)
		if err != nil {
			b.Fatal(err)
		}
		sink += s.Get("input").End
	}
}

func BenchmarkReadText(b *testing.B) {
	bench(b, []byte(`{"model":"text-embedding-3-small","input":"`+strings.Repeat("The quick brown fox. ", 50)+`","encoding_format":"base64"}`))
}

func BenchmarkReadTextNotASCII(b *testing.B) {
	bench(b, []byte(`{"model":"text-embedding-3-small","input":"`+strings.Repeat("Über den Wölken ☃. ", 50)+`"}`))
}

func BenchmarkReadTokens(b *testing.B) {
	bench(b, []byte(`{"model":"text-embedding-3-small","input":[`+strings.Repeat("12345,", 2000)+`1]}`))
}

func BenchmarkReadVector(b *testing.B) {
	var v strings.Builder
	for i := range 1536 {
		fmt.Fprintf(&v, "%.17g,", math.Sin(float64(i))/30)
	}
	bench(b, []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[`+v.String()+`0]}],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}`))
}

func TestReplaceUsesTheCapacity(t *testing.T) {
	for _, with := range []string{`""`, `"b"`, `"abc"`, `"longer"`, `"` + strings.Repeat("x", 40) + `"`} {
		for _, spare := range []int{0, 3, 64} {
			doc := []byte(`{"model":"abc","n":1}`)
			body := append(make([]byte, 0, len(doc)+spare), doc...)
			at := Span{Start: 9, End: 14}
			want := string(Splice(doc, at, []byte(with)))
			got := Replace(body, at, []byte(with))
			if string(got) != want {
				t.Errorf("%s, %d bytes to spare: got %s, want %s", with, spare, got, want)
			}
			if inPlace := &got[0] == &body[0]; inPlace != (len(want) <= cap(body)) {
				t.Errorf("%s, %d bytes to spare: in place %v", with, spare, inPlace)
			}
		}
	}
}
