package llm_test

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/nulls"
	"weir/pkg/llm"
	"weir/pkg/llm/ir"
	"weir/pkg/wire/sse"
)

// theirs are the members whose values belong to a user, a tool or a schema.
var theirs = []string{
	"parameters", "input_schema", "schema", "json_schema", "metadata", "logit_bias", "input", "args", "arguments", "output_schema", "logprobs", "logprobs[]",
	"response", "responseJsonSchema", "parametersJsonSchema",
}

// converseAnswer is an answer of Converse with every member that is read.
const converseAnswer = `{"output":{"message":{"role":"assistant","content":[
	{"reasoningContent":{"reasoningText":{"text":"hm","signature":"SIG"}}},
	{"text":"Hi"},
	{"citationsContent":{"content":[{"text":"a"}],"citations":[{"title":"A","location":{"web":{"url":"https://a.example"}}}]}},
	{"toolUse":{"toolUseId":"t1","name":"f","input":{"a":1}}}]}},
	"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheWriteInputTokens":4},
	"additionalModelResponseFields":{"stop_sequence":"x"},"serviceTier":{"type":"default"}}`

// Clients and servers that serialize their data types write null for an absent
// member. gjson's ForEach calls its function once for a null, so that a null
// list of calls became a call without a name.
func TestNullInRequestEqualsAbsent(t *testing.T) {
	n := 0
	for _, from := range clients {
		all := cases(t, "requests/"+from.String(), ".json")
		known := nulls.Of(theirs, slices.Collect(maps.Values(all))...)
		for name, body := range all {
			known.Each(t, body, func(member string, null, absent []byte) {
				for _, to := range targets {
					if to.to == from {
						continue
					}
					n++
					if got, want := requestOf(from, to.to, to.model, to.devs, null), requestOf(from, to.to, to.model, to.devs, absent); got != want {
						t.Errorf("%v/%s %s for %s:\nnull:\n%s\nabsent:\n%s", from, name, member, to.name, got, want)
						break
					}
				}
			})
		}
	}
	if n < 5000 {
		t.Errorf("only %d translations were compared", n)
	}
}

func TestNullInAnswerEqualsAbsent(t *testing.T) {
	n := 0
	for _, from := range append(slices.Clone(upstreams), llm.Converse) {
		all := map[string][]byte{"converse": []byte(converseAnswer)}
		if from != llm.Converse {
			all = cases(t, "answers/"+from.String(), ".json")
		}
		known := nulls.Of(theirs, slices.Collect(maps.Values(all))...)
		for name, body := range all {
			known.Each(t, body, func(member string, null, absent []byte) {
				for _, to := range clients {
					n++
					if got, want := answerOf(from, to, null), answerOf(from, to, absent); got != want {
						t.Errorf("%v/%s %s for %v:\nnull:\n%s\nabsent:\n%s", from, name, member, to, got, want)
						break
					}
				}
			})
		}
	}
	if n < 1000 {
		t.Errorf("only %d translations were compared", n)
	}
}

func TestNullInStreamEqualsAbsent(t *testing.T) {
	n := 0
	for _, from := range upstreams {
		all := cases(t, "streams/"+from.String(), ".sse")
		var documents [][]byte
		for _, body := range all {
			for _, e := range eventsOf(body) {
				documents = append(documents, e.Data)
			}
		}
		known := nulls.Of(theirs, documents...)
		for name, body := range all {
			list := eventsOf(body)
			for i, e := range list {
				known.Each(t, e.Data, func(member string, null, absent []byte) {
					for _, to := range clients {
						n++
						got, _ := run(from, to, streamOf(list, i, null))
						want, _ := run(from, to, streamOf(list, i, absent))
						if !bytes.Equal(got, want) {
							t.Errorf("%v/%s event %d %s for %v:\nnull:\n%s\nabsent:\n%s", from, name, i, member, to, got, want)
							break
						}
					}
				})
			}
		}
	}
	if n < 5000 {
		t.Errorf("only %d streams were compared", n)
	}
}

// eventsOf returns the events of a stream.
func eventsOf(body []byte) (list []sse.Event) {
	var r sse.Reader
	var e sse.Event
	r.Push(body)
	for r.Next(&e) {
		list = append(list, sse.Event{Name: bytes.Clone(e.Name), Data: bytes.Clone(e.Data)})
	}
	return list
}

// streamOf returns a stream with other data of the n-th event.
func streamOf(list []sse.Event, n int, data []byte) []byte {
	var b []byte
	for i, e := range list {
		if len(e.Name) > 0 {
			b = append(append(append(b, "event: "...), e.Name...), '\n')
		}
		if i == n {
			e.Data = data
		}
		b = append(append(append(b, "data: "...), e.Data...), "\n\n"...)
	}
	return b
}

func requestOf(from, to llm.Dialect, model, devs string, body []byte) string {
	opt := options()
	opt.Model, opt.Deviations = model, ir.DeviationsOf(devs)
	out, dropped, err := llm.Request(from, to, body, opt)
	return string(out) + " dropped " + strings.Join(dropped, " ") + " " + errorOf(err)
}

func answerOf(from, to llm.Dialect, body []byte) string {
	out, usage, err := llm.Response(from, to, body, options())
	return string(out) + " " + strconv.FormatBool(usage.Known) + errorOf(err)
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
