package llm

import (
	"strings"
	"testing"
)

// TestQuickReadAgreesWithParser sends streams of nearly equal events through a
// translator that recognizes them and one that parses all.
func TestQuickReadAgreesWithParser(t *testing.T) {
	chat := []string{
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":null}]}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":null}],"obfuscation":"abc"}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":null}],"obfuscation":"d\"e"}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"$"},"finish_reason":null}]}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"x","reasoning_content":"$"},"finish_reason":null}]}`,
		`{"id":"1","model":"m","choices":[{"index":1,"delta":{"content":"$"},"finish_reason":null}]}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"$"}}]}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"$"},"logprobs":{"content":[{"token":"$"}]},"finish_reason":null}]}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"$","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}`,
		`{"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":null}],"usage":{"prompt_tokens":1}}`,
	}
	messages := []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"$"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"$"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"$"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"$"}}`,
	}
	texts := []string{
		"a", "", `\n`, `\"},\"x\":\"`, "é☃😀", `\ud83d\ude00`, `\u00e9`, `\\`, `\/`, `a\\`, "\xff", "\x01", `\`, `\x`, `","finish_reason":"stop","y":"`,
		`"},"finish_reason":null}],"error":{"message":"no"},"z":[{"a":"`,
	}
	for _, c := range []struct {
		from  Dialect
		lines []string
	}{{Chat, chat}, {Messages, messages}} {
		for _, to := range []Dialect{Chat, Messages, Responses} {
			for i, line := range c.lines {
				for _, first := range texts {
					for _, second := range texts {
						in := ""
						for _, l := range c.lines[:min(i, 1)] {
							in += "data: " + l + "\n\n"
						}
						for _, text := range []string{"warm", first, second, "end"} {
							in += "data: " + strings.ReplaceAll(line, "$", text) + "\n\n"
						}
						known := Stream(c.from, to, Options{ID: "r"})
						parsed := Stream(c.from, to, Options{ID: "r"})
						parsed.quick = nil
						got := known.End(nil, known.Push([]byte(in), nil))
						want := parsed.End(nil, parsed.Push([]byte(in), nil))
						if string(got) != string(want) || known.Usage() != parsed.Usage() {
							t.Fatalf("%v to %v:\n%s\ngot\n%s\nwant\n%s", c.from, to, in, got, want)
						}
					}
				}
			}
		}
	}
}

func TestKnownEventIsNotParsed(t *testing.T) {
	line := "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"some words\"},\"finish_reason\":null}]}\n\n"
	s := Stream(Chat, Messages, Options{ID: "r"})
	out := s.Push([]byte(line), nil)
	if n := testing.AllocsPerRun(100, func() { out = s.Push([]byte(line)[:len(line):len(line)], out[:0]) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	data := strings.TrimSuffix(strings.TrimPrefix(line, "data: "), "\n\n")
	if !s.quick.ReadQuick([]byte(data), &s.outcome) {
		t.Error("the pattern was not learnt")
	}
}
