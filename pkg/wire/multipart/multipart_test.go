package multipart

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand"
	std "mime/multipart"
	"strings"
	"testing"
	"testing/iotest"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/stream"
)

func TestBoundary(t *testing.T) {
	tests := []struct{ contentType, want string }{
		{`multipart/form-data; boundary=abc`, "abc"},
		{`Multipart/Form-Data; charset=utf-8; BOUNDARY="a b'()+_,-./:=?"`, "a b'()+_,-./:=?"},
		{`multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW`, "----WebKitFormBoundary7MA4YWxkTrZu0gW"},
		{`multipart/form-data; boundary=----`, "----"},
		{`multipart/form-data; boundary=` + strings.Repeat("a", 70), strings.Repeat("a", 70)},
		{`multipart/form-data; boundary=` + strings.Repeat("a", 71), ""},
		{`multipart/form-data; boundary=` + strings.Repeat("-", 1000000), ""},
		{`multipart/form-data; boundary=`, ""},
		{`multipart/form-data; boundary=""`, ""},
		{`multipart/form-data; boundary="a "`, ""},
		{`multipart/form-data; boundary=a; boundary=b`, ""},
		{`multipart/form-data; boundary="a`, ""},
		{`multipart/form-data; boundary=é`, ""},
		{"multipart/form-data; boundary=\"a\r\nb\"", ""},
		{`multipart/form-data`, ""},
		{`multipart/mixed; boundary=a`, ""},
		{`application/json`, ""},
		{``, ""},
	}
	for _, tt := range tests {
		got, err := Boundary(tt.contentType)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%.60q: got %q, %v; want %q", tt.contentType, got, err, tt.want)
		}
	}
}

// form writes a form with the boundary "b".
func form(parts ...string) string {
	var w strings.Builder
	for _, p := range parts {
		w.WriteString("--b\r\n" + p + "\r\n")
	}
	return w.String() + "--b--\r\n"
}

func field(name, value string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
}

func file(name, content string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" + content
}

func TestForms(t *testing.T) {
	tests := []struct{ name, form, want string }{
		{"plain", form(field("model", "m"), file("file", "xyz")), "model=m file<a.wav audio/wav 3>"},
		{"crlf_first", "\r\n" + form(field("a", "1")), "a=1"},
		{"empty_values", form(field("a", ""), file("f", "")), "a= f<a.wav audio/wav 0>"},
		{"content_like_a_delimiter", form(field("a", "\r\n-\r\n--\r\n--a\r\n --b")), "a=\r\n-\r\n--\r\n--a\r\n --b"},
		{"blanks_after_a_delimiter", "--b \t\r\n" + field("a", "1") + "\r\n--b--", "a=1"},
		{"name_without_quotes", "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--", "a=1"},
		{"quote_in_a_file_name", form("Content-Disposition: form-data; name=\"f\"; filename=\"a\\\"b.wav\"\r\n\r\nx"), `f<a"b.wav  1>`},
		{"file_name_of_another_tongue", form("Content-Disposition: form-data; name=\"f\"; filename=\"音 \\\"1\\\".wav\"\r\n\r\nx"), `f<音 "1".wav  1>`},
		{"more_header_fields", form("X-A: 1\r\ncontent-disposition:form-data;name=\"a\"\r\nContent-Length: 1\r\n\r\n1"), "a=1"},
		{"filename_star_is_ignored", form("Content-Disposition: form-data; name=\"f\"; filename=\"a\"; filename*=utf-8''%2e%2e%2fx\r\n\r\n1"), "f<a  1>"},
		{"twenty_parts", form(strings.Split(strings.Repeat(field("a", "1")+"|", 20), "|")[:20]...), strings.TrimSpace(strings.Repeat("a=1 ", 20))},

		{"twenty_one_parts", form(strings.Split(strings.Repeat(field("a", "1")+"|", 21), "|")[:21]...), "400"},
		{"no_closing_delimiter", strings.TrimSuffix(form(field("a", "1")), "--b--\r\n"), "400"},
		{"cut_in_the_closing_delimiter", strings.TrimSuffix(form(field("a", "1")), "-\r\n"), "400"},
		{"preamble", "hello\r\n" + form(field("a", "1")), "400"},
		{"another_boundary", "--c\r\n" + field("a", "1") + "\r\n--c--\r\n", "400"},
		{"longer_boundary_inside", form(field("a", "\r\n--bb\r\n")), "400"},
		{"delimiter_with_text_after_it", form(field("a", "1\r\n--b x\r\n")), "400"},
		{"boundary_right_after_a_header", form(field("a", "--b")), "400"},
		{"no_name", form("Content-Disposition: form-data\r\n\r\n1"), "400"},
		{"no_header", form("\r\n1"), "400"},
		{"no_disposition", form("X-A: 1\r\n\r\n1"), "400"},
		{"attachment", form("Content-Disposition: attachment; name=\"a\"\r\n\r\n1"), "400"},
		{"two_dispositions", form("Content-Disposition: form-data; name=\"a\"\r\n" + field("b", "1")), "400"},
		{"two_names", form("Content-Disposition: form-data; name=\"a\"; name=\"model\"\r\n\r\n1"), "400"},
		{"two_file_names", form("Content-Disposition: form-data; name=\"a\"; filename=\"a\"; filename=\"b\"\r\n\r\n1"), "400"},
		{"encoded_name", form("Content-Disposition: form-data; name*=utf-8''model\r\n\r\n1"), "400"},
		{"path", form("Content-Disposition: form-data; name=\"f\"; filename=\"../../x\"\r\n\r\n1"), "400"},
		{"windows_path", form("Content-Disposition: form-data; name=\"f\"; filename=\"c:\\x\"\r\n\r\n1"), "400"},
		{"nul_in_a_name", form(field("a\x00", "1")), "400"},
		{"folded_header", form("Content-Disposition: form-data;\r\n name=\"a\"\r\n\r\n1"), "400"},
		{"lone_newlines", strings.ReplaceAll(form(field("a", "1")), "\r\n", "\n"), "400"},
		{"base64_part", form("Content-Transfer-Encoding: base64\r\n" + field("a", "1")), "400"},
		{"nested", form("Content-Type: multipart/mixed; boundary=c\r\n" + field("a", "1")), "400"},
		{"header_of_8_kib", form("X: " + strings.Repeat("x", 8<<10) + "\r\n" + field("a", "1")), "400"},
		{"header_without_end", "--b\r\nX: " + strings.Repeat("x", 64<<10), "400"},
		{"long_epilogue", form(field("a", "1")) + strings.Repeat(" ", 5000), "400"},
		{"empty", "", "400"},
		{"only_the_end", "--b--", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.form), iotest.OneByteReader(strings.NewReader(tt.form)), iotest.HalfReader(strings.NewReader(tt.form))} {
				f, err := Read(r, "b", 0)
				got := ""
				var e *apierr.Error
				if errors.As(err, &e) {
					got = fmt.Sprint(e.Status)
					if m := e.Message; !strings.HasPrefix(m, "The form is not valid: ") || !strings.HasSuffix(m, ".") || e.Code != "invalid_multipart" {
						t.Errorf("the error is no sentence: %q, code %q", m, e.Code)
					}
				} else if err != nil {
					t.Fatal(err)
				} else {
					for _, fd := range f.Fields {
						if fd.File {
							got += fmt.Sprintf(" %s<%s %s %d>", fd.Name, fd.Filename, fd.ContentType, fd.To-fd.From)
							continue
						}
						got += " " + fd.Name + "=" + fd.Value
						if tt.form[fd.From:fd.To] != fd.Value {
							t.Errorf("%s lies at %d to %d", fd.Name, fd.From, fd.To)
						}
					}
					got = strings.TrimPrefix(got, " ")
				}
				if got != tt.want {
					t.Errorf("got %q (%v), want %q", got, err, tt.want)
				}
			}
		})
	}
}

func TestMillionPartsAreRefusedAtOnce(t *testing.T) {
	body := strings.Repeat("--b\r\n"+field("a", "1")+"\r\n", 1000000)
	r := strings.NewReader(body)
	if _, err := Read(r, "b", 0); err == nil {
		t.Error("accepted")
	}
	if read := len(body) - r.Len(); read > len(body)/4 {
		t.Errorf("%d of %d bytes were read", read, len(body))
	}
}

// through sends a form through a Rewriter in pieces of up to n bytes.
func through(r stream.Transform, in string, n int) string {
	got, _ := io.ReadAll(&stream.Through{Src: io.NopCloser(&pieces{in, n}), T: r})
	return string(got)
}

type pieces struct {
	s string
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.s == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.s)
	p.s = p.s[n:]
	return n, nil
}

func TestRewriter(t *testing.T) {
	long := strings.Repeat("\r\n--x\x00\xff", 5000)
	in := form(field("model", "openai/whisper-1"), file("file", long), field("language", "de"))
	late := form(file("file", long), field("model", "whatever"), field("language", "de"))
	none := form(file("file", long))
	tests := []struct{ name, in, want string }{
		{"replace", in, form(field("model", "w"), file("file", long), field("language", "de"))},
		{"insert_and_leave_out", late, form(field("model", "w"), file("file", long), field("language", "de"))},
		{"insert", none, form(field("model", "w"), file("file", long))},
		{"insert_before_a_crlf", "\r\n" + none, form(field("model", "w"), file("file", long))},
		{"insert_and_leave_out_the_first", in, form(field("model", "w"), file("file", long), field("language", "de"))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 7, 4096, 1 << 20} {
				r := Insert("b", "model", "w", int64(len(tt.in)))
				if tt.name == "replace" {
					r = Replace("b", "model", "openai/whisper-1", "w", int64(len(tt.in)))
				}
				got := through(r, tt.in, n)
				if r.Err() != nil {
					t.Fatal(r.Err())
				}
				if int64(len(got)) != r.Length() {
					t.Errorf("%d bytes, %d promised", len(got), r.Length())
				}
				if body := strings.TrimRight(got, "\r\n "); body != strings.TrimRight(tt.want, "\r\n") {
					t.Errorf("got %.200q, want %.200q", got, tt.want)
				}
				other, err := std.NewReader(strings.NewReader(got), "b").ReadForm(1 << 20)
				if err != nil || len(other.Value["model"]) != 1 || other.Value["model"][0] != "w" {
					t.Errorf("another parser reads %v, %v", other, err)
				}
			}
		})
	}
}

func TestBrokenFormIsCutOff(t *testing.T) {
	tests := []struct{ name, in string }{
		{"model_twice", form(field("model", "a"), file("file", "x"), field("model", "b"))},
		{"model_is_a_file", form(file("model", "a"))},
		{"no_end", strings.TrimSuffix(form(file("file", "x")), "--\r\n")},
		{"nested", form("Content-Type: multipart/mixed\r\n" + field("a", "1"))},
		{"no_parts", "--b--\r\n"},
	}
	for _, tt := range tests {
		r := Insert("b", "model", "w", int64(len(tt.in)))
		got := through(r, tt.in, 5)
		var e *apierr.Error
		if !errors.As(r.Err(), &e) || e.Status != 400 {
			t.Errorf("%s: %v", tt.name, r.Err())
		}
		if int64(len(got)) >= r.Length() || strings.Contains(got, "--b--") {
			t.Errorf("%s: went out whole: %q", tt.name, got)
		}
	}
	r := Replace("b", "model", "a", "b", -1)
	if r.Length() != -1 {
		t.Errorf("a length of %d out of none", r.Length())
	}
	if r.End(stream.ErrClient, nil); r.Err() != nil {
		t.Errorf("an upstream that answers early: %v", r.Err())
	}
	if r.End(stream.ErrReset, nil); r.Err() != stream.ErrReset {
		t.Errorf("got %v", r.Err())
	}
}

func TestPeek(t *testing.T) {
	tests := []struct {
		name, in, want string
		found          bool
	}{
		{"first", form(field("model", "m"), file("file", "x")), "m", true},
		{"second", form(field("a", "1"), field("model", "m"), file("file", "x")), "m", true},
		{"last", form(field("model", "m")), "m", true},
		{"after_the_file", form(file("file", strings.Repeat("x", 1<<20)), field("model", "m")), "", false},
		{"absent", form(field("a", "1")), "", false},
		{"too_long", form(field("model", strings.Repeat("m", 257))), "400", false},
		{"a_file", form(file("model", "m")), "400", false},
		{"cut", "--b\r\n" + field("model", "m"), "400", false},
		{"far_away", form(field("a", strings.Repeat("x", 200<<10)), field("model", "m")), "", false},
	}
	for _, tt := range tests {
		for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
			head, value, found, err := Peek(r, "b", "model", 256)
			if err != nil {
				value = "400"
			} else {
				rest, _ := io.ReadAll(r)
				if string(head)+string(rest) != tt.in {
					t.Errorf("%s: the form was changed", tt.name)
				}
				if len(head) > maxPeek+4<<10 {
					t.Errorf("%s: read %d bytes", tt.name, len(head))
				}
			}
			if value != tt.want || found != tt.found {
				t.Errorf("%s: got %q, %v, %v", tt.name, value, found, err)
			}
		}
	}
}

func TestCutAndSplice(t *testing.T) {
	src := make([]byte, 1000)
	rand.New(rand.NewSource(1)).Read(src)
	for from := 0; from < 1000; from += 97 {
		for _, to := range []int{from, from + 1, from + 2, from + 3, 1000} {
			for _, n := range []int{1, 2, 5, 100, 1000} {
				to := min(to, 1000)
				plain := &Cut{From: int64(from), To: int64(to), Head: []byte("<"), Tail: []byte(">")}
				if got := through(plain, string(src), n); got != "<"+string(src[from:to])+">" || int64(len(got)) != plain.Length() {
					t.Fatalf("cut %d to %d in pieces of %d: %q", from, to, n, got)
				}
				coded := &Cut{From: int64(from), To: int64(to), Head: []byte("<"), Tail: []byte(">"), Base64: true}
				if got := through(coded, string(src), n); got != "<"+base64.StdEncoding.EncodeToString(src[from:to])+">" || int64(len(got)) != coded.Length() {
					t.Fatalf("base64 of %d to %d in pieces of %d: %q", from, to, n, got)
				}
				splice := &Splice{From: int64(from), To: int64(to), With: []byte("new"), Size: 1000}
				if got := through(splice, string(src), n); got != string(src[:from])+"new"+string(src[to:]) || int64(len(got)) != splice.Length() {
					t.Fatalf("splice of %d to %d in pieces of %d: %q", from, to, n, got)
				}
			}
		}
	}
}

func TestWriter(t *testing.T) {
	w := NewWriter("b")
	w.Field("a", "1")
	w.Field("q\"\r\n", "2")
	head, tail := w.File("file", "x\".wav", "audio/wav")
	f, err := Read(bytes.NewReader(append(append(head, "content"...), tail...)), "b", 0)
	if err != nil || len(f.Fields) != 3 || f.Text("a") != "1" || f.Fields[1].Name != "q%22%0D%0A" {
		t.Fatalf("%+v, %v", f, err)
	}
	if got, err := f.File("file"); err != nil || got.Filename != "x%22.wav" || got.To-got.From != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	if b, err := Boundary(NewWriter("a b").ContentType()); b != "a b" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// FuzzScanner: whatever comes in, nothing is lost or handed out twice, the cuts
// make no difference, and what is accepted another parser reads the same way.
func FuzzScanner(f *testing.F) {
	f.Add([]byte(form(field("model", "m"), file("file", "x\r\n--"))), uint8(3))
	f.Add([]byte("\r\n--b \r\n"+field("a", "1")+"\r\n--b--"), uint8(1))
	f.Add([]byte(form(field("a", "\r\n--bb"))), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, n uint8) {
		whole, err := Read(bytes.NewReader(in), "b", 0)
		cut, cutErr := Read(&pieces{string(in), int(n) + 1}, "b", 0)
		if (err == nil) != (cutErr == nil) {
			t.Fatalf("whole: %v, in pieces: %v", err, cutErr)
		}
		r := Insert("b", "model", "w", int64(len(in)))
		got := through(r, string(in), int(n)+1)
		if r.Err() == nil && int64(len(got)) != r.Length() {
			t.Fatalf("%d bytes, %d promised", len(got), r.Length())
		}
		if err != nil {
			return
		}
		if fmt.Sprintf("%+v", whole) != fmt.Sprintf("%+v", cut) {
			t.Fatalf("got %+v in pieces, %+v whole", cut, whole)
		}
		for _, fd := range whole.Fields {
			if !fd.File && string(in[fd.From:fd.To]) != fd.Value {
				t.Fatalf("%q does not lie at %d", fd.Value, fd.From)
			}
		}
		if len(whole.Fields) == 0 {
			return
		}
		other := std.NewReader(bytes.NewReader(in), "b")
		for _, fd := range whole.Fields {
			p, err := other.NextRawPart()
			if err != nil {
				t.Skip("another parser refuses") // it is stricter with the values of headers
			}
			content, err := io.ReadAll(p)
			if err != nil || string(content) != string(in[fd.From:fd.To]) {
				t.Fatalf("another parser reads %q, %v", content, err)
			}
			// It returns no name for dispositions that it cannot parse.
			if name := p.FormName(); name != "" && name != fd.Name {
				t.Fatalf("another parser reads the name %q as %q", fd.Name, name)
			}
		}
	})
}

func BenchmarkRewriter(b *testing.B) {
	audio := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(audio)
	boundary := "------------------------d74496d66958873e"
	in := strings.ReplaceAll(form(field("model", "m"), file("file", string(audio))), "--b", "--"+boundary)
	out := make([]byte, 0, 64<<10)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		r := Replace(boundary, "model", "m", "whisper-1", int64(len(in)))
		for at := 0; at < len(in); at += 32 << 10 {
			out = r.Push([]byte(in[at:min(at+32<<10, len(in))]), out[:0])
		}
		r.End(nil, out[:0])
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
}
