package llm_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/sse"
)

// parts are the parts of a Gemini client's stream, as clients collect them.
func parts(t *testing.T, events []byte) (list []gjson.Result) {
	t.Helper()
	var r sse.Reader
	var ev sse.Event
	r.Push(events)
	for r.Next(&ev) {
		list = append(list, gjson.GetBytes(ev.Data, "candidates.0.content.parts").Array()...)
	}
	return list
}

// Claude refuses a turn with calls whose thoughts are missing or changed. Gemini CLI
// stores no parts that are thoughts, other clients store all, and Python's decode a
// signature and encode it for URLs.
func TestThoughtsSurviveGeminiClients(t *testing.T) {
	claude := []byte(`{"content":[{"type":"thinking","thinking":"hm \"q\" é","signature":"S+/="},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"f","input":{}},{"type":"thinking","thinking":"more","signature":"SIG2"},{"type":"tool_use","id":"toolu_2","name":"f","input":{}},{"type":"tool_use","id":"toolu_3","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`)
	want := gjson.GetBytes(claude, "content").Raw
	clients := map[string]func(p gjson.Result) (raw string, keep bool){
		"Gemini CLI": func(p gjson.Result) (string, bool) { return p.Raw, !p.Get("thought").Bool() },
		"JavaScript": func(p gjson.Result) (string, bool) { return p.Raw, true },
		"Python": func(p gjson.Result) (string, bool) {
			sig := p.Get("thoughtSignature").Str
			b, err := base64.StdEncoding.DecodeString(sig)
			if err != nil {
				t.Errorf("the signature %q is not base64", sig)
			}
			return strings.ReplaceAll(p.Raw, sig, base64.URLEncoding.EncodeToString(b)), true
		},
	}
	for name, client := range clients {
		for _, hidden := range []bool{false, true} {
			opt := options()
			opt.HideThoughts = hidden
			whole, _, err := llm.Response(llm.Messages, llm.Gemini, claude, opt)
			if err != nil {
				t.Fatal(err)
			}
			events, _, err := llm.Replay(llm.Messages, llm.Gemini, claude, opt)
			if err != nil {
				t.Fatal(err)
			}
			for form, list := range map[string][]gjson.Result{"whole": gjson.GetBytes(whole, "candidates.0.content.parts").Array(), "streamed": parts(t, events)} {
				var turn []string
				for _, p := range list {
					if raw, keep := client(p); keep {
						turn = append(turn, raw)
					}
					if p.Get("thought").Bool() && hidden {
						t.Errorf("a thought that was not asked for: %s", p.Raw)
					}
				}
				between := ","
				if form == "streamed" { // each event is stored as a content
					between = `]},{"role":"model","parts":[`
				}
				body := `{"contents":[{"parts":[{"text":"a"}]},{"role":"model","parts":[` + strings.Join(turn, between) + `]},{"parts":[` + times(3, `{"functionResponse":{"name":"f","response":{"output":"r"}}}`) + `]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":2000}}}`
				got, dropped := send(t, llm.Gemini, llm.Messages, body, llm.Options{Model: "claude-sonnet-4-5"})
				if c := got.Get("messages.1.content").Raw; c != want || got.Get("thinking.type").Str != "enabled" || len(dropped) > 0 {
					t.Errorf("%s, %s, hidden %v: got %s, thinking %s, dropped %v", name, form, hidden, c, got.Get("thinking").Raw, dropped)
				}
				// At Gemini the calls stay, with the signature that stands for none.
				home, _ := send(t, llm.Gemini, llm.Gemini, body, llm.Options{Model: "gemini-3-pro"})
				if strings.Contains(home.Raw, "d2Vpci5") || strings.Count(home.Raw, "functionCall") != 3 || strings.Count(home.Raw, "skip_thought_signature_validator") != 2 || strings.Contains(home.Raw, `"thought"`) {
					t.Errorf("%s, %s: sent to Gemini: %s", name, form, home.Raw)
				}
			}
		}
	}
}

// DeepSeek refuses a call without the reasoning before it, which has no signature.
func TestUnsignedReasoningSurvivesGeminiCLI(t *testing.T) {
	answer := []byte(`{"choices":[{"message":{"content":null,"reasoning_content":"I reason","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	events, _, err := llm.Replay(llm.Chat, llm.Gemini, answer, options())
	if err != nil {
		t.Fatal(err)
	}
	var turn []string
	for _, p := range parts(t, events) {
		if !p.Get("thought").Bool() {
			turn = append(turn, p.Raw)
		}
	}
	body := `{"contents":[{"parts":[{"text":"a"}]},{"role":"model","parts":[` + strings.Join(turn, ",") + `]},{"parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"r"}}}]}]}`
	got, _ := send(t, llm.Gemini, llm.Chat, body, llm.Options{Model: "deepseek-v4", Deviations: ir.DeviationsOf("deepseek")})
	if m := got.Get("messages.1"); m.Get("reasoning_content").Str != "I reason" || m.Get("tool_calls.0.id").Str != "c1" || got.Get("messages.2.tool_call_id").Str != "c1" {
		t.Errorf("got %s", got.Raw)
	}
}

// A call without an id has the same one in every request of its conversation, as a
// provider's cache of prompts expects.
func TestCallIDsAreStable(t *testing.T) {
	turn := `{"parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","response":{}}}]}`
	opt := llm.Options{Model: "m"}
	opt.ID = "r1"
	first, _ := send(t, llm.Gemini, llm.Chat, `{"contents":[`+turn+`]}`, opt)
	opt.ID = "r2"
	second, _ := send(t, llm.Gemini, llm.Chat, `{"contents":[`+turn+`,`+turn+`]}`, opt)
	if a, b := first.Get("messages.1").Raw, second.Get("messages.1").Raw; a != b || second.Get("messages.1.tool_calls.0.id").Str == second.Get("messages.4.tool_calls.0.id").Str {
		t.Errorf("got %s, then %s", a, second.Raw)
	}
}

// The sources of an answer come with byte offsets.
// Gemini CLI repeats the results of a session that it resumes; Claude and others refuse a
// second result of a call.
func TestRepeatedResultsOfGeminiClientsAreLeftOut(t *testing.T) {
	result := func(id, text string) string {
		return `{"functionResponse":{"id":"` + id + `","name":"weather","response":{"output":"` + text + `"}}}`
	}
	call := func(id string) string { return `{"functionCall":{"id":"` + id + `","name":"weather","args":{}}}` }
	turns := `{"contents":[{"role":"user","parts":[{"text":"?"}]},` +
		`{"role":"model","parts":[` + call("a") + `,` + call("b") + `]},` +
		`{"role":"user","parts":[` + result("a", "sun") + `,` + result("a", "sun") + `,` + result("b", "rain") + `]},` +
		`{"role":"model","parts":[` + call("a") + `]},{"role":"user","parts":[` + result("a", "snow") + `]}]}`
	for _, to := range []llm.Dialect{llm.Messages, llm.Chat} {
		got, _ := send(t, llm.Gemini, to, turns, llm.Options{Model: "m"})
		for _, text := range []string{"sun", "rain", "snow"} {
			if n := strings.Count(got.Raw, text); n != 1 {
				t.Errorf("%s: the result %q is sent %d times: %s", to, text, n, got.Raw)
			}
		}
	}
}

func TestSourcesOfGeminiClients(t *testing.T) {
	in := []byte(`{"content":[{"type":"text","text":"Né "},{"type":"text","text":"☃😀","citations":[{"type":"web_search_result_location","url":"a","title":"A","cited_text":"q","encrypted_index":"E"}]},{"type":"text","text":" so."}],"stop_reason":"end_turn"}`)
	whole, _, err := llm.Response(llm.Messages, llm.Gemini, in, options())
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := llm.Replay(llm.Messages, llm.Gemini, in, options())
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(events[strings.LastIndex(strings.TrimSpace(string(events)), "\n"):]), "data: ")
	want := `{"groundingChunks":[{"web":{"uri":"a","title":"A"}}],"groundingSupports":[{"segment":{"startIndex":4,"endIndex":11,"text":"☃😀"},"groundingChunkIndices":[0]}]}`
	for form, answer := range map[string]string{"whole": string(whole), "streamed": last} {
		if got := gjson.Get(answer, "candidates.0.groundingMetadata").Raw; got != want {
			t.Errorf("%s: got %s in %s", form, got, answer)
		}
	}
}

// The usage and the finish reason of an event with an image are behind it.
func TestEndOfLongGeminiEventIsRead(t *testing.T) {
	for _, pad := range []int{1 << 10, 64 << 10, 64<<10 + 7, 200_000, 3 << 20} {
		body := `data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + strings.Repeat("A", pad) + `"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":10}}` + "\r\n\r\n"
		for _, size := range []int{4000, 40_000, len(body)} {
			seen, o := observe(llm.Gemini, []byte(body), size, nil)
			if o.Usage() != (llm.Usage{Input: 20, Output: 10, Known: true}) || !o.Complete() || len(seen) != len(body) {
				t.Errorf("%d bytes in pieces of %d: %+v, complete %v, %v", pad, size, o.Usage(), o.Complete(), o.Failure())
			}
		}
	}
	cut := `data: {"candidates":[{"content":{"parts":[{"text":"` + strings.Repeat(`\"finishReason\":\"STOP\"`, 10_000) + `"}]}}]}` + "\n\n"
	if _, o := observe(llm.Gemini, []byte(cut), 40_000, nil); o.Complete() {
		t.Error("a finish reason in a text ends the answer")
	}
}

func TestLogprobsOfGeminiClients(t *testing.T) {
	logprobs := func(token string) string {
		return `{"content":[{"token":"` + token + `","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"` + token + `","logprob":-0.5},{"token":"z","logprob":-2}]}],"refusal":null}`
	}
	const want = `{"topCandidates":[{"candidates":[{"token":"a","logProbability":-0.5},{"token":"z","logProbability":-2}]}],"chosenCandidates":[{"token":"a","logProbability":-0.5}]}`
	whole, _, err := llm.Response(llm.Chat, llm.Gemini, []byte(`{"choices":[{"message":{"content":"a"},"logprobs":`+logprobs("a")+`,"finish_reason":"stop"}]}`), options())
	if err != nil {
		t.Fatal(err)
	}
	if got := gjson.GetBytes(whole, "candidates.0.logprobsResult").Raw; got != want {
		t.Errorf("whole: got %s", whole)
	}
	chunk := func(text, finish string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"logprobs":` + logprobs(text) + `,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	events, s := run(llm.Chat, llm.Gemini, []byte(chunk("a", "null")+chunk("b", `"stop"`)+"data: [DONE]\n\n"))
	if n := strings.Count(string(events), `"chosenCandidates":[{"token":"a"`) + strings.Count(string(events), `"chosenCandidates":[{"token":"b"`); !s.Complete() || n != 2 || !strings.Contains(string(events), want) {
		t.Errorf("streamed: got %s", events)
	}
}

// Both spellings of a request have as many tokens.
func TestTokensOfBothSpellings(t *testing.T) {
	const body = `{"systemInstruction":{"parts":[{"text":"Be brief and kind."}]},"contents":[{"parts":[{"text":"Look"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"image/png","fileUri":"https://a.example/b.png"}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"AAAAAAAAAAAAAAAA"}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}}]}]}`
	snake := strings.NewReplacer("systemInstruction", "system_instruction", "inlineData", "inline_data", "mimeType", "mime_type", "fileData", "file_data", "fileUri", "file_uri", "functionCall", "function_call",
		"thoughtSignature", "thought_signature", "functionDeclarations", "function_declarations", "parametersJsonSchema", "parameters_json_schema").Replace(body)
	if a, b := llm.Estimate([]byte(body)), llm.Estimate([]byte(snake)); a != b || a < 1600 {
		t.Errorf("%d and %d", a, b)
	}
}
