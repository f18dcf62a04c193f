package gateway

import (
	"testing"

	"github.com/tidwall/gjson"

	"weir/pkg/auth"
	"weir/pkg/wire/httpmsg"
)

func TestLogLineHasTraceOfRequest(t *testing.T) {
	line := func(header ...httpmsg.Field) gjson.Result {
		r := &httpmsg.Request{ID: "req_0123456789abcdef0123456789abcdef", Method: "POST", Route: "/v1/embeddings", Header: header}
		return gjson.Get(logLine(&Ended{Call: &auth.Call{Request: r}, Status: 200}, func(s string) string { return s }), "trace_id")
	}
	if got := line().Str; got != "0123456789abcdef0123456789abcdef" {
		t.Errorf("without a traceparent: %q, want the digits of the request's id", got)
	}
	parent := httpmsg.Field{Name: "traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	if got := line(parent).Str; got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("with a traceparent: %q", got)
	}
}
