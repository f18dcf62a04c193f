package gateway

import (
	"encoding/hex"
	"strconv"

	"weir/pkg/wire/tracecontext"
)

// log writes the line of a request, unless it has succeeded and those lines are left out.
func (g *Gateway) log(e *Ended) {
	switch {
	case e.Status >= 500:
		g.Log(2, logLine(e, g.Redact))
	case !g.Quiet:
		g.Log(0, logLine(e, g.Redact))
	}
}

// logLine is the one line that a request leaves: no body, no query, no
// credential. Times are milliseconds.
func logLine(e *Ended, clean func(string) string) string {
	r, t, status := e.Call.Request, &e.Call.Trace, e.Status
	b := make([]byte, 0, 448)
	b = append(b, `{"level":"`...)
	if status >= 500 {
		b = append(b, `error`...)
	} else {
		b = append(b, `info`...)
	}
	b = append(b, `","msg":"request","request_id":"`...)
	b = append(b, r.ID...)
	b = append(b, `","trace_id":"`...)
	trace := tracecontext.ForRequest(r.ID, tracecontext.Of(r.Header)).Trace
	b = hex.AppendEncode(b, trace[:])
	b = append(b, `","method":`...)
	b = appendString(b, r.Method)
	b = append(b, `,"route":`...)
	b = appendString(b, r.Route)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"ms":`...)
	b = strconv.AppendInt(b, e.At.Sub(r.Start).Milliseconds(), 10)
	b = appendField(b, "machine", e.Call.MachineID)
	b = appendField(b, "key", t.KeyID)
	b = appendField(b, "provider", t.Provider)
	b = appendField(b, "connection", t.ConnectionID)
	b = appendField(b, "model", clean(t.Model)) // the client's text
	if attempts := t.Attempts(); attempts > 0 {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(attempts), 10)
	}
	if t.Err != nil {
		b = appendField(b, "error", clean(t.Err.Error()))
	}
	return string(append(b, '}'))
}

func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return appendString(b, value)
}

// appendString appends a JSON string; what is not plain ASCII becomes \u00XX of
// its bytes, which is enough for a log.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c >= 0x7f:
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
