package host

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
)

// answer is what the program has answered, outside the cells.
type answer struct {
	*httpmsg.Response
	constant []constant // of its template
	src      source     // of a body that is not in memory
	o        *observer  // of src, nil if it only passes
}

// answerOf returns an answer for use outside the cells. It is called inside.
func (i *instance) answerOf(resp *httpmsg.Response) answer {
	a := answer{Response: resp, constant: i.constants(resp.Template)}
	switch resp.Body.(type) {
	case nil, *stream.Bytes:
	default:
		a.src, a.o = i.observe(resp.Body)
	}
	return a
}

// constant is a header field of a template as net/http holds it.
type constant struct {
	name   string
	values []string
}

// constants returns the fields of a template. It is called inside the cell.
func (i *instance) constants(t *httpmsg.Template) []constant {
	if t == nil {
		return nil
	}
	if t.Number == 0 {
		list := make([]constant, len(t.Fields))
		for j, f := range t.Fields {
			list[j] = constant{headerName(f.Name), []string{f.Value}}
		}
		i.templates = append(i.templates, list)
		t.Number = int32(len(i.templates))
	}
	return i.templates[t.Number-1]
}

// respond sends an answer.
func (h *Host) respond(w http.ResponseWriter, hr *http.Request, a answer) {
	header := w.Header()
	for _, c := range a.constant {
		header[c.name] = c.values
	}
	values := make([]string, 0, len(a.Header)+1)
	for _, f := range a.Header {
		values = addField(header, values, f)
	}
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // none, instead of a guess
	}
	if a.Status < 200 || a.Status > 599 {
		a.Status = http.StatusBadGateway // net/http cannot send another
	}
	bodyless := a.Status == 204 || a.Status == 205 || a.Status == 304
	var all []byte
	length := int64(-1)
	switch b := a.Body.(type) {
	case nil:
		length = 0
	case *stream.Bytes:
		all = b.All()
		length = int64(len(all))
	default:
		if a.o == nil {
			length = a.src.length
		}
	}
	if length >= 0 && !bodyless {
		values = append(values, strconv.FormatInt(length, 10))
		header["Content-Length"] = values[len(values)-1:]
	}
	w.WriteHeader(a.Status)
	out := answerWriter{w: w, rc: http.NewResponseController(w), each: hr.ProtoMajor > 1}
	if a.src.Reader != nil {
		h.flow(hr, a, &out)
		return
	}
	out.limit(int64(len(all))) // net/http flushes within it, and removes it
	if len(all) > 0 && !bodyless && hr.Method != http.MethodHead {
		w.Write(all)
	}
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

// A client receives minRate bytes a second, and may fall behind by writeStall.
// Otherwise its connection is closed.
const writeStall = 2 * time.Minute

// flow sends a body as it arrives. A body that breaks off, and has no observer to
// say so, closes the connection.
func (h *Host) flow(hr *http.Request, a answer, out *answerWriter) {
	h.flows.Add(1)
	defer h.flows.Add(-1)
	defer a.src.Close()
	defer out.limit(0) // net/http writes the end
	if !a.src.ready {
		out.flush() // the head goes out before the first piece
	}
	end := h.pump(hr, a, out)
	a.src.Close()
	if a.o != nil {
		tail := a.o.end(end)
		if !a.o.cut {
			if !errors.Is(end, stream.ErrClient) {
				out.write(tail)
			}
			return
		}
	}
	if end != nil {
		panic(http.ErrAbortHandler)
	}
}

// pump sends the pieces of a body and returns how it ended.
func (h *Host) pump(hr *http.Request, a answer, out *answerWriter) error {
	small := make([]byte, smallRead)
	buf := small
	var large *[]byte
	defer func() {
		if large != nil {
			h.buffers.Put(large)
		}
	}()
	var beats *heart
	if a.o != nil && a.o.beater != nil {
		beats = newHeart(a.o, out)
		defer beats.stop()
	}
	for {
		n, err := a.src.Read(buf)
		if n > 0 {
			over, err := h.forward(hr, a.o, beats, out, buf[:n])
			if err != nil || over {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return cause(hr.Context(), err)
		case n == len(buf) && large == nil: // a full read means that more is waiting
			large = h.buffers.Get().(*[]byte)
			buf = *large
		case n < smallRead && large != nil:
			h.buffers.Put(large)
			large, buf = nil, small
		}
	}
}

// forward sends a piece of a body, and reports whether the body is over.
func (h *Host) forward(hr *http.Request, o *observer, beats *heart, out *answerWriter, piece []byte) (over bool, err error) {
	if o != nil && !o.ready(hr.Context(), piece) {
		return false, stream.ErrMemory
	}
	if beats != nil {
		beats.mu.Lock()
		defer beats.mu.Unlock()
		beats.last = time.Now()
	}
	if o != nil {
		piece, over = o.push(piece)
	}
	if out.write(piece) != nil {
		return false, stream.ErrClient
	}
	return over, nil
}

// heart sends heartbeats while a stream is silent.
type heart struct {
	o   *observer
	out *answerWriter

	mu      sync.Mutex // of what follows, o and out
	last    time.Time  // when something was sent
	timer   *time.Timer
	stopped bool
}

func newHeart(o *observer, out *answerWriter) *heart {
	b := &heart{o: o, out: out, last: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(o.every, b.beat)
	return b
}

// beat sends a heartbeat if it is due, and waits for the next. A client that has left is
// noticed by the body's next piece, or its end.
func (b *heart) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	if now := time.Now(); now.Sub(b.last) >= b.o.every {
		b.last = now
		if b.out.write(b.o.beat()) != nil {
			return
		}
	}
	b.timer.Reset(time.Until(b.last.Add(b.o.every)))
}

// stop ends the heartbeats.
func (b *heart) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.timer.Stop()
}

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
		a.until = now.Add(writeStall + time.Duration(n)*time.Second/minRate)
		a.rc.SetWriteDeadline(a.until)
	}
}
