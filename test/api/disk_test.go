package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"weir/internal/testgw/front"
	"weir/pkg/gateway"
)

// The scheduled work reports a disk that is nearly full to every machine, once a day.
func TestFullDiskIsReported(t *testing.T) {
	free := int64(100 << 30)
	w := &world{Gateway: front.New(func(p *gateway.Ports) {
		p.Disk = func() (int64, int64) { return free, 1000 << 30 }
	}), t: t}
	var m struct{ MachineID string }
	w.get(201, w.do("POST", "/api/machines", adminToken, `{"name":"one"}`), &m)
	w.get(201, w.do("POST", "/"+m.MachineID+"/api/destinations", adminToken, `{"kind":"webhook","settings":{"url":"https://hooks.example.com/a"}}`), nil)
	cron := func() (told int) {
		for range 3 {
			w.Clock.Add(5 * time.Minute)
			w.Objects.Alarms(context.Background())
			w.App.Cron(context.Background(), "")
		}
		w.Clock.Add(time.Minute)
		w.Objects.Alarms(context.Background())
		for _, s := range w.Seen {
			if strings.HasPrefix(s.URL, "https://hooks.") && gjson.Get(s.Body, "type").Str == "disk.full" {
				told++
			}
		}
		return told
	}
	if n := cron(); n != 0 {
		t.Errorf("with much space: %d messages", n)
	}
	free = 40 << 30
	if n := cron(); n != 1 {
		t.Errorf("with 4 %%: %d messages, want one", n)
	}
	w.Clock.Add(25 * time.Hour)
	if n := cron(); n != 2 {
		t.Errorf("a day later: %d messages, want another one", n)
	}
}
