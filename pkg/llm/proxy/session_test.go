package proxy

import (
	"bytes"

	"slices"
	"strings"
	"testing"

	"weir/pkg/llm"
	"weir/pkg/routing"
)

// opened reads a body and returns the digest of its opening, 0 without one.
func opened(t testing.TB, d llm.Dialect, body string) routing.Digest {
	t.Helper()
	digest, ok := read(t, d, body).Opening()
	if !ok {
		return 0
	}
	return digest
}

func read(t testing.TB, d llm.Dialect, body string) *Request {
	t.Helper()
	var a *Request
	var err error
	if d == llm.Gemini {
		a, err = ReadGemini("m", false, []byte(body))
	} else {
		a, err = ReadRequest(d, []byte(`{"model":"m",`+body[1:]))
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return a
}

func TestSessionField(t *testing.T) {
	for _, tt := range []struct {
		d           llm.Dialect
		fields      string
		name, value string
	}{
		{llm.Chat, `"session_id":"s","prompt_cache_key":"k","metadata":{"session_id":"t","user_id":"u"}`, "session_id", "s"},
		{llm.Chat, `"prompt_cache_key":"k","metadata":{"session_id":"t"}`, "metadata.session_id", "t"},
		{llm.Chat, `"prompt_cache_key":"k","metadata":{"user_id":"u"}`, "prompt_cache_key", "k"},
		{llm.Responses, `"prompt_cache_key":"k"`, "prompt_cache_key", "k"},
		{llm.Messages, `"metadata":{"user_id":"user_1_session_2"}`, "metadata.user_id", "user_1_session_2"},
		{llm.Chat, `"session_id":"","prompt_cache_key":7,"metadata":{"user_id":""}`, "", ""},
		{llm.Messages, `"metadata":"text"`, "", ""},
		{llm.Messages, `"metadata":null`, "", ""},
	} {
		content := `"messages":[]`
		if tt.d == llm.Responses {
			content = `"input":"x"`
		}
		name, value := read(t, tt.d, "{"+tt.fields+","+content+"}").SessionField()
		if name != tt.name || value != tt.value {
			t.Errorf("%s: %s %q, want %s %q", tt.fields, name, value, tt.name, tt.value)
		}
	}
}

// The calls of one conversation have one opening: later turns, marks for a cache and the
// form of a content do not change it. Another first message or system prompt does.
func TestOpeningIsThatOfTheConversation(t *testing.T) {
	for _, tt := range []struct {
		d           llm.Dialect
		same, other []string
	}{
		{llm.Chat, []string{
			`{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"user","content":"and?"}]}`,
			`{"messages":[{"role":"developer","content":[{"type":"text","text":"be brief"}]},{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}`,
		}, []string{
			`{"messages":[{"role":"system","content":"be long"},{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hey"}]}`,
		}},
		{llm.Messages, []string{
			`{"system":"be brief","messages":[{"role":"user","content":"hi"}]}`,
			`{"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":"ho"}]}`,
		}, []string{`{"system":"be long","messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{"role":"user","content":"hi"}]}`}},
		{llm.Responses, []string{
			`{"instructions":"be brief","input":"hi"}`,
			`{"instructions":"be brief","input":[{"role":"user","content":"hi"}]}`,
			`{"instructions":"be brief","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","name":"f"}]}`,
		}, []string{`{"input":"hi"}`, `{"instructions":"be brief","input":"hey"}`}},
		{llm.Gemini, []string{
			`{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			`{"system_instruction":{"parts":[{"text":"be brief"}]},"contents":[{"parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"ho"}]}]}`,
			`{"system_instruction":{"parts":[{"text":"be brief"}]},"contents":{"role":"user","parts":[{"text":"hi"}]}}`,
		}, []string{`{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`}},
	} {
		want := opened(t, tt.d, tt.same[0])
		for _, body := range tt.same {
			if opened(t, tt.d, body) != want || want == 0 {
				t.Errorf("%s: another opening", body)
			}
		}
		for _, body := range tt.other {
			if got := opened(t, tt.d, body); got == want || got == 0 {
				t.Errorf("%s: the same opening, or none", body)
			}
		}
	}
	for _, body := range []string{`{"messages":[]}`, `{"messages":[{"role":"assistant","content":"ho"}]}`, `{"messages":[1,"x",null]}`} {
		if opened(t, llm.Chat, body) != 0 {
			t.Errorf("%s: has an opening", body)
		}
	}
}

// Reading a session allocates nothing, however long the conversation is: one walk up to
// the first message of the user.
func TestReadingASessionAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 20_000} {
		a := read(t, llm.Chat, `{"prompt_cache_key":"k","messages":[`+strings.Repeat(`{"role":"assistant","content":[{"text":"x"}]},`, n)+`{"role":"user","content":[`+strings.Repeat(`{"text":"x"},`, n)+`{}]}]}`)
		if got := testing.AllocsPerRun(3, func() { a.SessionField(); a.Opening() }); got > 2 {
			t.Errorf("%d messages: %.0f allocations", n, got)
		}
	}
}

func FuzzSession(f *testing.F) {
	speak := append([]llm.Dialect{llm.Completions}, clients[:]...)
	for d := range speak {
		f.Add(byte(d), []byte(`{"model":"m","system":"s","instructions":"i","metadata":{"user_id":"u"},"session_id":"x","prompt_cache_key":"k","messages":[{"role":"user","content":[{"text":"hi"}]}],"input":[{"role":"user","content":"hi"}],"contents":[{"parts":[{"text":"hi"}]}],"prompt":"p"}`))
	}
	f.Add(byte(slices.Index(speak, llm.Messages)), []byte(`{"model":"m","system":[[{"text":1}]],"messages":[{"role":"user","content":{"parts":"x"}}]}`))
	f.Fuzz(func(t *testing.T, d byte, body []byte) {
		at := speak[int(d)%len(speak)]
		before := bytes.Clone(body)
		a, err := ReadRequest(at, body)
		if at == llm.Gemini {
			a, err = ReadGemini("m", true, body)
		}
		if err != nil {
			return
		}
		name, value := a.SessionField()
		one, ok := a.Opening()
		if two, again := a.Opening(); one != two || ok != again || (name == "") != (value == "") {
			t.Errorf("%s %q, %v %v", name, value, ok, again)
		}
		if !bytes.Equal(body, before) {
			t.Error("the body has changed")
		}
	})
}
