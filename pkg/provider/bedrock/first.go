package bedrock

import "weir/pkg/wire/eventstream"

// First returns the first event of a stream of which head is the beginning, as
// Frames would: for judging an answer before it is settled for. ok is false
// while its message is not whole. A corrupt beginning results in the event of a
// corrupt stream.
func First(head []byte) (name string, data []byte, ok bool) {
	var r eventstream.Reader
	var m eventstream.Message
	r.Push(head)
	if r.Next(&m) {
		name, data = describe(&m)
		return name, data, true
	}
	if r.Err() != nil {
		return corrupt, []byte(corruptData), true
	}
	return "", nil, false
}
