package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/store"
)

// Each request that is reported becomes a line that waits for every destination of the
// log of requests. The lines are in pages, JSON arrays. The page that is not full is a part
// of the activity row, so that it costs no row of its own. When enough lines wait, or for
// long enough, they become deliveries in the outbox in the same turn.
const (
	LogKind = "s3" // of the destinations of the log

	logPrefix     = "log:"     // and the id of the destination and the number of the page
	logOpenPrefix = "logopen:" // and the id: the page that is not full
	logsRow       = "logs"     // a LogQueue by the id of its destination
)

// Bounds of the queues.
const (
	logEvery     = 5 * Minute // between two deliveries, unless others wait
	logEveryLate = Hour
	maxLogLine   = 64 << 10  // bytes
	openLogPage  = 32 << 10  // bytes from which on a page has a row of its own
	maxLogPage   = 512 << 10 // bytes
	// Bytes of lines that become deliveries at once. A program on the edge has less memory.
	maxLogQueue       = 2 << 20
	maxLogQueueNative = 8 << 20
)

// LogQueue is what waits to become deliveries for one destination.
type LogQueue struct {
	Pages   int64 `json:"pages,omitempty"` // that are full
	Lines   int64 `json:"lines,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"`
	Since   int64 `json:"since,omitempty"`   // when the first line was added
	Dropped int64 `json:"dropped,omitempty"` // requests without a line since the last delivery
	Paused  bool  `json:"paused,omitempty"`  // takes no more
}

// logQueues returns the queues by the id of their destination.
func (t *Tx) logQueues() map[string]LogQueue {
	queues := map[string]LogQueue{}
	if t.Meta.Logs {
		t.Load(logsRow, &queues)
	}
	return queues
}

// putLogs stores the queues, and when the alarm has to make deliveries.
func (t *Tx) putLogs(queues map[string]LogQueue) {
	t.Meta.LogAt = 0
	for id, q := range queues {
		if at := t.logDue(id, q); at > 0 && (t.Meta.LogAt == 0 || at < t.Meta.LogAt) {
			t.Meta.LogAt = at
		}
	}
	if t.Meta.Logs = len(queues) > 0; t.Meta.Logs {
		t.Put(logsRow, queues)
	} else {
		t.Del(logsRow)
	}
}

// logDue returns when the lines of a queue become deliveries, 0 for never.
func (t *Tx) logDue(id string, q LogQueue) int64 {
	most := int64(maxLogQueue)
	if t.MaxRequests > 0 {
		most = maxLogQueueNative
	}
	switch {
	case q.Lines == 0:
		return 0
	case q.Bytes >= most:
		return t.Now
	case slices.ContainsFunc(t.Outbox(id).Items, func(d Delivery) bool { return d.Type == Lines }):
		// The destination does not take them: fewer, larger objects.
		return min(q.Since, t.Now) + logEveryLate
	}
	return min(q.Since, t.Now) + logEvery
}

// openLog begins the queue of a destination, unless it has one. A paused one takes no more
// lines.
func (t *Tx) openLog(id string, paused bool) {
	queues := t.logQueues()
	q := queues[id]
	q.Paused = paused
	queues[id] = q
	t.putLogs(queues)
}

// closeLog removes the queue of a destination.
func (t *Tx) closeLog(id string) {
	queues := t.logQueues()
	if q, ok := queues[id]; ok {
		t.takePages(id, q)
		delete(queues, id)
		t.putLogs(queues)
	}
}

// DropLogs removes all queues at once, before the turn looks at all rows.
func (t *Tx) DropLogs() error {
	if !t.Meta.Logs {
		return nil
	}
	for id := range t.logQueues() {
		t.closeLog(id)
	}
	return t.Commit()
}

// logWriter adds the lines of requests to the queues.
type logWriter struct {
	t     *Tx
	names map[string]string // of keys, by their ids
	lines [][]byte
	lost  int64 // requests that are not known or whose lines are too long
}

// add adds the line of a request, which is listed as row.
func (w *logWriter) add(r *store.Request, row []byte) {
	if !w.t.Meta.Logs {
		return
	}
	if line := w.t.LogLine(r, row, w.names); len(line) <= maxLogLine {
		w.lines = append(w.lines, line)
	} else {
		w.lost++
	}
}

// end writes the lines to the queues.
func (w *logWriter) end() {
	if !w.t.Meta.Logs {
		return
	}
	queues := w.t.logQueues()
	for id, q := range queues {
		if q.Paused {
			continue
		}
		q.Dropped += w.lost
		w.t.addLines(id, &q, w.lines)
		queues[id] = q
	}
	w.t.putLogs(queues)
}

// LogLine returns the line of a request: its row, the item of GET /api/requests, preceded by
// the time of its arrival as text, the machine and the name of the key. names are those of
// keys.
func (t *Tx) LogLine(r *store.Request, row []byte, names map[string]string) []byte {
	at := r.At
	if at <= 0 || at > t.Now+Day {
		at = t.Now
	}
	name, known := names[r.KeyID]
	if !known && r.KeyID != "" {
		raw, _ := t.Get(KeyPrefix + r.KeyID)
		name = gjson.GetBytes(raw, "name").Str
		names[r.KeyID] = name
	}
	line := append(make([]byte, 0, len(row)+128), logTime...)
	line = time.UnixMilli(at).UTC().AppendFormat(line, "2006-01-02T15:04:05.000Z")
	line = append(append(append(line, `","machine":"`...), t.ID...), '"')
	if name != "" {
		line = append(append(line, `,"keyName":`...), Encode(name)...)
	}
	return append(append(line, ','), row[1:]...)
}

const logTime = `{"time":"`

// LogHour returns the hour of a line: "2026-11-28T01".
func LogHour(line string) string { return line[len(logTime):][:len("2006-01-02T15")] }

// addLines adds lines to a queue.
func (t *Tx) addLines(id string, q *LogQueue, lines [][]byte) {
	if len(lines) == 0 {
		return
	}
	if q.Lines == 0 {
		q.Since = t.Now
	}
	open, _ := t.Get(logOpenPrefix + id)
	page := slices.Clone(open[:max(len(open)-1, 0)]) // without its bracket
	end := func() {
		t.Set(logPage(id, q.Pages), append(page, ']'))
		t.Del(logOpenPrefix + id)
		q.Pages++
		page = nil
	}
	for _, line := range lines {
		if len(page)+len(line) > maxLogPage {
			end()
		}
		mark := byte(',')
		if len(page) == 0 {
			mark = '['
		}
		page = append(append(page, mark), line...)
		q.Bytes += int64(len(line))
	}
	q.Lines += int64(len(lines))
	if len(page) >= openLogPage {
		end()
	} else {
		t.Set(logOpenPrefix+id, append(page, ']'))
	}
}

func logPage(id string, n int64) string { return fmt.Sprintf("%s%s:%d", logPrefix, id, n) }

// takePages removes the pages of a queue and returns their lines.
func (t *Tx) takePages(id string, q LogQueue) (lines []string) {
	take := func(key string) {
		raw, _ := t.Get(key)
		gjson.ParseBytes(raw).ForEach(func(_, line gjson.Result) bool {
			lines = append(lines, line.Raw)
			return true
		})
		t.Del(key)
	}
	for n := range q.Pages {
		take(logPage(id, n))
	}
	take(logOpenPrefix + id)
	return lines
}

// TakeLogs calls each with the destinations whose lines are to become deliveries now.
func (t *Tx) TakeLogs(each func(id string, lines []string)) {
	queues := t.logQueues()
	taken := false
	for id, q := range queues {
		if at := t.logDue(id, q); at > 0 && at <= t.Now {
			each(id, t.takePages(id, q))
			if q.Dropped > 0 {
				o := t.Outbox(id)
				o.Dropped += q.Dropped
				t.putOutbox(id, &o)
			}
			queues[id], taken = LogQueue{Paused: q.Paused}, true
		}
	}
	if taken {
		t.putLogs(queues)
	}
}

// PlanLogs sets the next alarm of the queues again.
func (t *Tx) PlanLogs() {
	if t.Meta.Logs {
		t.putLogs(t.logQueues())
	}
}
