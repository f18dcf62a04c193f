package llm_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/llm"
)

// cited returns the citations of a chat or Responses answer: the text between
// the offsets, which count code points.
func cited(text string, notes gjson.Result) (list []string) {
	points := []rune(text)
	for _, n := range notes.Array() {
		if u := n.Get("url_citation"); u.Exists() {
			n = u
		}
		list = append(list, n.Get("url").Str+"="+string(points[n.Get("start_index").Int():n.Get("end_index").Int()]))
	}
	return list
}

func TestCitationsKeepTheirOffsets(t *testing.T) {
	chat := `{"choices":[{"message":{"content":"Né ☃😀 so.","annotations":[{"type":"url_citation","url_citation":{"url":"a","title":"A","start_index":3,"end_index":5}}]},"finish_reason":"stop"}]}`
	claude := `{"content":[{"type":"text","text":"Né "},{"type":"text","text":"☃😀","citations":[{"type":"web_search_result_location","url":"a","title":"A","cited_text":"q","encrypted_index":"E"}]},{"type":"text","text":" so."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard"}}`
	gemini := `{"candidates":[{"content":{"role":"model","parts":[{"text":"Né ☃😀 so."},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"a","title":"A"}},{"web":{"uri":"b","title":"B"}}],"groundingSupports":[{"segment":{"startIndex":4,"endIndex":11,"text":"☃😀"},"groundingChunkIndices":[0,9]}]}}]}`
	responses := `{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Né ☃😀 so.","annotations":[{"type":"url_citation","url":"a","title":"A","start_index":3,"end_index":5}]}]}]}`
	converse := `{"output":{"message":{"content":[{"text":"Né "},{"citationsContent":{"content":[{"text":"☃😀"}],"citations":[{"title":"A","location":{"web":{"url":"a"}}}]}},{"text":" so."}]}},"stopReason":"end_turn"}`
	for _, tt := range []struct {
		from llm.Dialect
		body string
	}{{llm.Chat, chat}, {llm.Messages, claude}, {llm.Gemini, gemini}, {llm.Responses, responses}, {llm.Converse, converse}} {
		want := []string{"a=☃😀"}
		if tt.from == llm.Gemini {
			want = append(want, "b=") // found, and not said where it was used
		}
		check := func(what string, got []string) {
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%v %s: got %q, want %q", tt.from, what, got, want)
			}
		}
		if tt.from != llm.Chat {
			out, _, err := llm.Response(tt.from, llm.Chat, []byte(tt.body), options())
			if err != nil {
				t.Fatal(err)
			}
			m := gjson.GetBytes(out, "choices.0.message")
			check("to chat", cited(m.Get("content").Str, m.Get("annotations")))
			if tier := gjson.GetBytes(out, "service_tier").Str; tt.from == llm.Messages && tier != "default" {
				t.Errorf("service tier %q", tier)
			}
			// The same in a stream.
			events, _, err := llm.Replay(tt.from, llm.Chat, []byte(tt.body), options())
			if err != nil {
				t.Fatal(err)
			}
			text, notes := "", ""
			for _, line := range strings.Split(string(events), "\n") {
				d := gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta")
				text += d.Get("content").Str
				if a := d.Get("annotations.0"); a.Exists() {
					notes += "," + a.Raw
				}
			}
			check("streamed to chat", cited(text, gjson.Parse("["+strings.TrimPrefix(notes, ",")+"]")))
		}
		if tt.from != llm.Responses {
			out, _, err := llm.Response(tt.from, llm.Responses, []byte(tt.body), options())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			gjson.GetBytes(out, `output.#(type=="message").content`).ForEach(func(_, p gjson.Result) bool {
				got = append(got, cited(p.Get("text").Str, p.Get("annotations"))...)
				return true
			})
			check("to responses", got)
		}
	}
}

// The text that a source of Gemini supports is that of its segment.
func TestGroundingNamesItsSegment(t *testing.T) {
	gemini := func(segment string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"Né ☃😀 so."}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"a","title":"A"}}],"groundingSupports":[{"segment":{"startIndex":4,"endIndex":11,"text":"` + segment + `"},"groundingChunkIndices":[0]}]}}]}`
	}
	for segment, want := range map[string]string{"☃😀": "☃😀", strings.Repeat("x", 3000): ""} {
		out, _, err := llm.Response(llm.Gemini, llm.Messages, []byte(gemini(segment)), options())
		if err != nil {
			t.Fatal(err)
		}
		c := gjson.GetBytes(out, "content.#.citations.0|0")
		if c.Get("url").Str != "a" || c.Get("cited_text").Str != want {
			t.Errorf("got %s, want the text %q", out, want)
		}
	}
}

// A message of Claude has no field for an image.
func TestLostImagesAreReported(t *testing.T) {
	var lost []string
	opt := options()
	opt.Lost = func(name string) { lost = append(lost, name) }
	in := `{"candidates":[{"content":{"parts":[{"text":"x"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},"finishReason":"STOP"}]}`
	for _, to := range clients {
		lost = nil
		if _, _, err := llm.Response(llm.Gemini, to, []byte(in), opt); err != nil || (len(lost) == 1) != (to == llm.Messages) {
			t.Errorf("%v: lost %v, %v", to, lost, err)
		}
	}
}

// A citation in Claude's stream comes before or after the text, without
// offsets. It applies to the whole block.
func TestCitationsInClaudeStreamCoverTheirBlock(t *testing.T) {
	for name, deltas := range map[string][]string{
		"before": {`{"type":"citations_delta","citation":{"url":"a","title":"A"}}`, `{"type":"text_delta","text":"\u2603\ud83d"}`, `{"type":"text_delta","text":"\ude00"}`},
		"after":  {`{"type":"text_delta","text":"☃"}`, `{"type":"text_delta","text":"😀"}`, `{"type":"citations_delta","citation":{"url":"a","title":"A"}}`},
	} {
		in := `data: {"type":"message_start","message":{"id":"m"}}` + "\n\n"
		in += `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Né \n"}}` + "\n\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n"
		in += `data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}` + "\n\n"
		for _, d := range deltas {
			in += `data: {"type":"content_block_delta","index":1,"delta":` + d + "}\n\n"
		}
		in += `data: {"type":"content_block_stop","index":1}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
		out, s := run(llm.Messages, llm.Chat, []byte(in))
		if !s.Complete() || !strings.Contains(string(out), `"start_index":4,"end_index":6`) {
			t.Errorf("%s: %s", name, out)
		}
		out, _ = run(llm.Messages, llm.Responses, []byte(in))
		if !strings.Contains(string(out), `"start_index":0,"end_index":2`) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// Claude accepts only its own citations.
func TestForeignCitationsAreRemovedForClaude(t *testing.T) {
	answer := `{"choices":[{"message":{"content":"x","annotations":[{"type":"url_citation","url_citation":{"url":"a","title":"A","start_index":0,"end_index":1}}]},"finish_reason":"stop"}]}`
	out, _, err := llm.Response(llm.Chat, llm.Messages, []byte(answer), options())
	if err != nil {
		t.Fatal(err)
	}
	block := gjson.GetBytes(out, "content.0").Raw
	body := `{"model":"a","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[` + block + `,{"type":"text","text":"y","citations":[{"encrypted_index":"OWN"}]}]},{"role":"user","content":"b"}]}`
	got, dropped := send(t, llm.Messages, llm.Messages, body, llm.Options{Model: "claude-opus-5-5"})
	if c := got.Get("messages.1.content").Raw; c != `[{"type":"text","text":"x"},{"type":"text","text":"y","citations":[{"encrypted_index":"OWN"}]}]` || strings.Join(dropped, ",") != "messages.citations" {
		t.Errorf("got %s, dropped %v", c, dropped)
	}
}
