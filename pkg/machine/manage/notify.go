package manage

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/storage"
)

// Notify stores a message for the destinations that have chosen its event and that only,
// if it is not nil, lets through. In its quiet hours a destination gets one summary after
// them.
func (o *Manager) Notify(t *storage.Tx, event string, m *deliver.Message, only func(d *storage.Destination) bool) {
	m.Type, m.At = event, t.Now
	for _, d := range deliver.Targets(t, storage.Notification) {
		if !deliver.Wants(&d, event) || only != nil && !only(&d) {
			continue
		}
		item := m.Item(d.ID)
		if end := o.quietUntil(t, &d); end > 0 {
			if o.hold(t, &d, m) {
				continue
			}
			item.From, item.Held, item.Until = end, true, end+storage.Day
		}
		t.Enqueue(item)
	}
}

// Link returns the address of a page of the dashboard, "" if that of the gateway is not known.
func (o *Manager) Link(t *storage.Tx, page string) string {
	if o.PublicURL == "" {
		return ""
	}
	return o.PublicURL + "/#/m/" + t.ID + "/" + page
}

// Clock returns a time as messages state it, in the time zone of the machine.
func (o *Manager) Clock(t *storage.Tx, ms int64) string {
	zone, offset := "UTC", 0
	if z := o.Zone(t); z != nil && t.Settings().TimeZone != "" {
		zone, offset = t.Settings().TimeZone, z(ms)
	}
	return time.UnixMilli(ms).UTC().Add(time.Duration(offset)*time.Second).Format("Jan 2, 15:04 ") + zone
}

// quietUntil returns the end of the quiet hours of a destination, 0 outside of them.
func (o *Manager) quietUntil(t *storage.Tx, d *storage.Destination) int64 {
	from, to, ok := deliver.QuietHours(d.Options["quietHours"])
	if !ok {
		return 0
	}
	offset := 0
	if z := o.Zone(t); z != nil {
		offset = z(t.Now)
	}
	const day = 24 * 60
	now := (int(t.Now/storage.Minute)%day + offset/60 + 2*day) % day
	if left := (to - now + day) % day; (now-from+day)%day < (to-from+day)%day {
		return t.Now - t.Now%storage.Minute + int64(left)*storage.Minute
	}
	return 0
}

// keyCreated notifies of a new key.
func (o *Manager) keyCreated(t *storage.Tx, k *storage.Key, actor string) {
	name := "A key"
	if k.Name != "" {
		name = fmt.Sprintf("The key %q", deliver.Plain(k.Name, 80))
	}
	o.Notify(t, deliver.KeyCreated, &deliver.Message{Title: name + " was created", Level: deliver.Warn,
		Link: o.Link(t, "keys"), Text: fmt.Sprintf("%s (%s) was created by %s. If you do not know it, revoke it on the page Keys.",
			name, o.MaskedKey(k.ID), strings.Replace(actor, ":", " ", 1))}, nil)
}

const maxSummary = 50 // messages that a summary lists

// hold adds a message to the one that waits for the end of the quiet hours, and reports
// whether there is one.
func (o *Manager) hold(t *storage.Tx, d *storage.Destination, m *deliver.Message) bool {
	item, ok := t.Held(d.ID)
	if !ok {
		return false
	}
	s, err := deliver.ReadMessage(&item)
	if err != nil {
		return false
	}
	var data struct {
		Count int `json:"count"`
	}
	line := func(m *deliver.Message) string { return o.Clock(t, m.At) + ": " + deliver.Plain(m.Title, 200) }
	if json.Unmarshal(s.Data, &data); s.Type != deliver.Summary {
		s = deliver.Message{Type: deliver.Summary, Text: line(&s), Level: s.Level, Link: o.Link(t, "requests")}
		data.Count = 1
	}
	data.Count++
	switch n := data.Count - maxSummary; {
	case n <= 0:
		s.Text += "\n" + line(m)
	case n == 1:
		s.Text += "\n… and more"
	}
	if m.Level == deliver.Bad {
		s.Level = m.Level
	}
	s.At, s.Data = t.Now, storage.EncodeJSON(data)
	s.Title = fmt.Sprintf("%d notifications of the quiet hours", data.Count)
	changed := s.Item(d.ID)
	item.Body, item.Title = changed.Body, changed.Title
	t.SetBody(&item)
	return true
}

// Lasted returns a duration as messages state it.
func Lasted(ms int64) string {
	minutes := ms / storage.Minute
	var parts []string
	for _, u := range [...]struct {
		minutes int64
		name    string
	}{{24 * 60, "d"}, {60, "h"}, {1, "min"}} {
		if n := minutes / u.minutes; n > 0 && len(parts) < 2 {
			parts, minutes = append(parts, fmt.Sprintf("%d %s", n, u.name)), minutes%u.minutes
		}
	}
	if parts == nil {
		return "less than a minute"
	}
	return strings.Join(parts, " ")
}
