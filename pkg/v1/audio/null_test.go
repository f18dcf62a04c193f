package audio

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/nulls"
	"weir/internal/testgw"
	"weir/internal/testgw/fake"
	"weir/pkg/provider"
)

// seen is what the client got and what went up, without members that are null.
func seen(w *testgw.World, outcome string) string {
	if head, body, json := strings.Cut(outcome, "{"); json {
		outcome = head + nulls.Without([]byte("{"+body))
	}
	for _, s := range w.Seen {
		outcome += "\n" + s.Method + " " + s.URL + " " + nulls.Without([]byte(s.Body))
	}
	return outcome
}

// member calls test for each member of one of the answers: with it null, and
// without it.
func member(t *testing.T, name string, list []string, outcome func(list []string) string) (n int) {
	for i, answer := range list {
		n += nulls.Of(nil, []byte(answer)).Compare(t, fmt.Sprint(name, ": answer ", i), []byte(answer), func(document []byte) string {
			answers := slices.Clone(list)
			answers[i] = string(document)
			return outcome(answers)
		})
	}
	return n
}

func TestNullInTranscriptionEqualsAbsent(t *testing.T) {
	n := 0
	for model, list := range transcriptions {
		name, rest, _ := strings.Cut(model, "/")
		for _, format := range []string{"json", "verbose_json", "diarized_json", "srt"} {
			n += member(t, name+" "+format, list, func(list []string) string {
				w := testgw.New(t, name)
				w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(list[min(len(w.Seen), len(list))-1]) }
				c, _ := send(w, form(field("model", provider.Lookup(name).Alias+"/"+rest), file("SOUND"), field("response_format", format)))
				return seen(w, testgw.Outcome(handler(w).Transcriptions(context.Background(), c)))
			})
		}
	}
	if n < 400 {
		t.Errorf("only %d cases", n)
	}
}

func TestNullInVoiceListEqualsAbsent(t *testing.T) {
	n := 0
	for name, list := range voiceLists {
		n += member(t, name, list, func(list []string) string {
			w := testgw.New(t, name)
			w.Answer = func(*fake.Seen) fake.Answer { return fake.JSON(list[min(len(w.Seen), len(list))-1]) }
			return seen(w, testgw.Outcome(handler(w).Voices(context.Background(), w.Call("GET", nil, 0, "query", "provider="+name))))
		})
	}
	if n < 60 {
		t.Errorf("only %d cases", n)
	}
}

func TestNullInSpeechEqualsAbsent(t *testing.T) {
	answers := map[string][]string{
		"openai":     nil,
		"elevenlabs": nil,
		"deepgram":   nil,
		"cartesia":   nil,
		"xai":        nil,
		"inworld":    {`{"audioContent":"U09VTkQ=","error":null}`},
		"mistral":    {`{"audio_data":"U09VTkQ=","error":null}`},
		"minimax":    {`{"data":{"audio":"534f554e44","status":2},"base_resp":{"status_code":0,"status_msg":"ok"},"trace_id":"t"}`},
		"gemini":     {`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;codec=pcm;rate=24000","data":"UENNREFUQSE="}}],"role":"model"},"finishReason":"STOP"}],"promptFeedback":null}`},
		"fal":        {`{"request_id":"f-1","status_url":"https://queue.fal.run/own/requests/f-1/status","response_url":"https://queue.fal.run/own/requests/f-1"}`, `{"status":"COMPLETED","error":null}`, `{"audio":{"url":"https://v3.fal.media/1.mp3"},"error":null}`},
		"runway":     {`{"id":"r-1"}`, `{"status":"SUCCEEDED","failure":null,"output":["https://dnznrvs05pmza.cloudfront.net/1.mp3"]}`},
		"dashscope":  {`{"output":{"audio":{"url":"http://dashscope-result.oss-ap-southeast-1.aliyuncs.com/1.wav?Expires=1","data":""},"finish_reason":"stop"},"code":null}`},
	}
	n := 0
	for name, list := range answers {
		alias := provider.Lookup(name).Alias
		if name == "fal" {
			alias += "/own"
		}
		outcome := func(body string, list []string) string {
			w := testgw.New(t, name)
			w.Answer = func(*fake.Seen) fake.Answer {
				if len(w.Seen) > len(list) {
					return fake.OK("audio/mpeg", "SOUND")
				}
				return fake.JSON(list[len(w.Seen)-1])
			}
			return seen(w, testgw.Outcome(handler(w).Speech(context.Background(), w.Post(body))))
		}
		for _, body := range []string{
			`{"model":"` + alias + `/tts-1","input":"Hi","voice":"v-1","response_format":"wav","speed":1.5,"instructions":"slowly","user":"u","stream_format":"audio","language":"en","seed":1,"lang":"de"}`,
			`{"model":"` + alias + `/tts-1","input":"Hi","voice":{"id":"v-1"}}`,
		} {
			n += nulls.Of(nil, []byte(body)).Compare(t, name+": request", []byte(body), func(document []byte) string { return outcome(string(document), list) })
			n += member(t, name, list, func(list []string) string { return outcome(body, list) })
		}
	}
	if n < 200 {
		t.Errorf("only %d cases", n)
	}
}
