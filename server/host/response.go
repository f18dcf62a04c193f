package host

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/server/dashboard"
)

// constant is a header field of a template as net/http holds it.
type constant struct {
	name   string
	values []string
}

// constants returns the fields of a template.
func (h *Host) constants(t *httpmsg.Template) []constant {
	if t == nil {
		return nil
	}
	if list, ok := h.templates.Load(t); ok {
		return list.([]constant)
	}
	list := make([]constant, len(t.Fields))
	for i, f := range t.Fields {
		list[i] = constant{headerName(f.Name), []string{f.Value}}
	}
	h.templates.Store(t, list)
	return list
}

// respond sends an answer.
func (h *Host) respond(w http.ResponseWriter, hr *http.Request, resp *httpmsg.Response) {
	header := w.Header()
	for _, c := range h.constants(resp.Template) {
		header[c.name] = c.values
	}
	values := make([]string, 0, len(resp.Header)+1)
	for _, f := range resp.Header {
		values = addField(header, values, f)
	}
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // none, instead of a guess
	}
	status := resp.Status
	if status < 200 || status > 599 {
		status = http.StatusBadGateway // net/http cannot send another
	}
	bodyless := status == 204 || status == 205 || status == 304
	var all []byte
	var f *flow
	length := int64(0)
	switch b := resp.Body.(type) {
	case nil:
	case *stream.Bytes:
		all = compressed(hr, header, b.All())
		length = int64(len(all))
	default:
		f = flowOf(b)
		length = f.length
	}
	if length >= 0 && !bodyless {
		values = append(values, strconv.FormatInt(length, 10))
		header["Content-Length"] = values[len(values)-1:]
	}
	w.WriteHeader(status)
	out := &answerWriter{w: w, rc: http.NewResponseController(w), each: hr.ProtoMajor > 1}
	if f != nil {
		f.client, f.log = out, h.Log
		h.flow(hr, f)
		return
	}
	out.limit(int64(len(all))) // net/http flushes within it, and removes it
	if len(all) > 0 && !bodyless && hr.Method != http.MethodHead {
		w.Write(all)
	}
}

// compressedFrom is the least size, in bytes, of an answer that is compressed.
const compressedFrom = 4 << 10

// compressed returns the answer to a read of management by gzip if the client accepts that,
// as the edge does by itself: a list of models is ten times smaller. Answers of models pass as
// they are. Its length tells other sites nothing (BREACH), since they have no session here.
func compressed(hr *http.Request, header http.Header, all []byte) []byte {
	if len(all) < compressedFrom || hr.Method != http.MethodGet || !strings.Contains(hr.URL.Path, "/api/") ||
		header["Content-Encoding"] != nil || !dashboard.Accepts(hr.Header, "gzip") {
		return all
	}
	header["Content-Encoding"] = []string{"gzip"}
	header["Vary"] = append(slices.Clone(header["Vary"]), "Accept-Encoding")
	return contentcoding.Gzip(all)
}

// closeAfter closes the connection of HTTP/1 after the answer, for a request whose
// end is not certain, or whose body was not read to its end: net/http would wait for
// the rest, which may never come.
func closeAfter(w http.ResponseWriter, hr *http.Request) {
	if hr.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// discardTime limits how long net/http waits for the rest of a body after the answer.
const discardTime = 5 * time.Second

// A client receives stream.MinRate bytes a second, and may fall behind by writeStall.
// Otherwise its connection is closed.
const writeStall = 2 * time.Minute

// answerWriter writes a body and flushes each piece.
type answerWriter struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	each  bool      // a deadline ends the stream also while nothing is written, as in HTTP/2
	until time.Time // the write deadline
}

func (a *answerWriter) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	a.limit(int64(len(p)))
	if _, err := a.w.Write(p); err != nil {
		return err
	}
	return a.flush()
}

// flush sends what was written.
func (a *answerWriter) flush() error {
	a.limit(0)
	err := a.rc.Flush()
	if a.each {
		a.until = time.Time{}
		a.rc.SetWriteDeadline(a.until)
	}
	return err
}

// limit sets the time within which the client receives n bytes.
func (a *answerWriter) limit(n int64) {
	if now := time.Now(); a.until.Sub(now) < writeStall/2 {
		a.until = now.Add(writeStall + time.Duration(n)*time.Second/stream.MinRate)
		a.rc.SetWriteDeadline(a.until)
	}
}
