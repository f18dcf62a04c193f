package proxy

import "testing"

func TestTextCountIsIndependentOfChunks(t *testing.T) {
	stream := `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\r\n\r\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"four"},"finish_reason":null}]}` + "\n\n: comment\n\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"a \"b\" \\"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"1","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"1","x":1,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":null}]}` + "\n\n" +
		`data: {"choices":[],"usage":{}}` + "\n\ndata: [DONE]\n\n"
	const want = len(`four`) + len(`a \"b\" \\`) + len(`hm`) + len(`{\"a\":1}`)
	for i := range len(stream) {
		for _, size := range []int{1, 7, len(stream)} {
			var w textCounter
			w.add([]byte(stream[:i]))
			for rest := stream[i:]; rest != ""; {
				n := min(size, len(rest))
				w.add([]byte(rest[:n]))
				rest = rest[n:]
			}
			if w.bytes != want {
				t.Fatalf("cut at %d, then each %d bytes: got %d, want %d", i, size, w.bytes, want)
			}
		}
	}
}
