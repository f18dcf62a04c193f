package program

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
)

// logger writes the log: one line of JSON for each event.
type logger struct {
	mu     sync.Mutex
	w      io.Writer
	lowest int // level
}

var levelNames = [...]string{"info", "warn", "error"}

// line writes one line of a level: 0 info, 1 warn, 2 error. Most lines are JSON;
// another text becomes the message of one.
func (l *logger) line(level int, line string) {
	if level < l.lowest {
		return
	}
	if !strings.HasPrefix(line, "{") {
		raw, err := json.Marshal(struct {
			Level string `json:"level"`
			Msg   string `json:"msg"`
		}{levelNames[min(max(level, 0), len(levelNames)-1)], line})
		if err != nil {
			return
		}
		line = string(raw)
	}
	b := append([]byte(line), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.Write(b) // nothing can be said where the log cannot be written
}

// Write logs a line of package log, which net/http writes to about its connections
// to upstreams, without the part of an answer that it quotes: that may be a user's.
func (l *logger) Write(p []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(p)), " starting with ")
	l.line(1, text)
	return len(p), nil
}
