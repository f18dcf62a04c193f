package llm

import (
	"bytes"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
)

// FirstFailure returns the failure that an event of an upstream's stream
// reports, or nil. The first event decides whether another account is tried.
func FirstFailure(from Dialect, name, data []byte) *apierr.Error {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return apierr.New(502, "upstream_cut", "The provider ended the stream without an answer. Try again.")
	}
	if ir.Check(data) != nil {
		return apierr.New(502, "bad_upstream_stream", "The provider sent an event that is not JSON. Check the base URL of the account, or try again.")
	}
	if harmless := dialects[from].harmless; harmless != nil && harmless(data) {
		return nil
	}
	var c catcher
	dialects[from].source(&ir.Options{}).Read(name, data, &c)
	return c.failure
}

// catcher stores the first failure of a few events.
type catcher struct{ failure *apierr.Error }

func (c *catcher) Event(e *ir.Event) {
	if e.Kind == ir.EventFail && c.failure == nil {
		c.failure = e.Failure
	}
}
