package deliver

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"weir/pkg/machine/storage"
)

// Message is a notification. Names in its texts are as users have set them, in one line:
// each kind escapes them.
type Message struct {
	Type  string          `json:"type"` // such as budget.reached
	At    int64           `json:"at"`
	Title string          `json:"title"`
	Text  string          `json:"text"`           // what happened, since when and what to do
	Link  string          `json:"link,omitempty"` // to the page of the dashboard
	Level string          `json:"level,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// Levels of a message.
const (
	Bad  = "bad"
	Warn = "warn"
	Good = "good"
)

// Item returns the delivery of a message to a destination.
func (m *Message) Item(destinationID string) storage.Delivery {
	return storage.Delivery{DestinationID: destinationID, Type: storage.Notification, Title: Plain(m.Title, 200),
		Body: storage.Encode(m), At: m.At}
}

// ReadMessage reads the body of an item.
func ReadMessage(item *storage.Delivery) (m Message, err error) {
	if json.Unmarshal(item.Body, &m) != nil {
		err = errors.New("the stored message is not readable")
	}
	return m, err
}

// webhookBody is the body of a webhook. Slack and those that read its messages show text.
func (m *Message) webhookBody() []byte {
	return storage.Encode(struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Title     string          `json:"title"`
		Text      string          `json:"text"`
		Data      json.RawMessage `json:"data,omitempty"`
	}{m.Type, time.UnixMilli(m.At).UTC().Format(time.RFC3339), Plain(m.Title, 200), m.Text, m.Data})
}

// Plain returns s in one line, without invisible characters, and at most n characters of
// it: the last one is then an ellipsis.
func Plain(s string, n int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == ' ' || !storage.IsPrintable(string(r))
	}), " ")
	return first(s, n)
}

// Lines is Plain for each line of s.
func Lines(s string, n int) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Plain(lines[i], n)
	}
	return first(strings.Join(lines, "\n"), n)
}

func first(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// QuietHours reads "22:00-07:00", in minutes of a day.
func QuietHours(s string) (from, to int, ok bool) {
	begin, end, _ := strings.Cut(s, "-")
	a, err := time.Parse("15:04", begin)
	b, err2 := time.Parse("15:04", end)
	from, to = a.Hour()*60+a.Minute(), b.Hour()*60+b.Minute()
	return from, to, err == nil && err2 == nil && from != to
}
