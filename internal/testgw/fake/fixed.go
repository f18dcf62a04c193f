package fake

import (
	"context"
	"strings"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Fixed is an upstream that has one JSON answer for each end of an address. It records
// nothing: it is for counts of allocations, of which it makes four for a call.
type Fixed map[string][]byte

// Start answers a call.
func (f Fixed) Start(_ context.Context, r *upstream.Request) upstream.Pending {
	for end, body := range f {
		if strings.HasSuffix(r.URL, end) {
			return &fixed{body}
		}
	}
	return &fixed{}
}

type fixed struct{ body []byte }

// Wait returns the answer.
func (p *fixed) Wait() (*upstream.Response, error) {
	return &upstream.Response{Status: 200, Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body: stream.FromBytes(p.body)}, nil
}
