package machine

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

// sums is a machine whose usage is compared with that of a model.
type sums struct {
	*world
	rnd     *rand.Rand
	entries []summed // what was reported, in the order of time
	durable int      // of entries, that a kill cannot lose
	shown   map[string]float64
}

// summed is a row of a report, with the labels of its calls.
type summed struct {
	at            int64
	report        int
	tool, project string
	usage.Row
}

// report reports random usage, until the storage takes it.
func (s *sums) report(n int) {
	var rep rpc.Report
	var list []summed
	for range 1 + s.rnd.IntN(6) {
		row := usage.Row{KeyID: fmt.Sprintf("key%017d", s.rnd.IntN(5)), ConnectionID: "c", Provider: "openai",
			Model: fmt.Sprint("openai/m", s.rnd.IntN(4)), Endpoint: []string{"/v1/chat/completions", "/v1/messages"}[s.rnd.IntN(2)]}
		for range 1 + s.rnd.IntN(3) { // attempts: retries and fallbacks
			row.Requests++
			row.InputTokens += s.rnd.Int64N(1000)
			row.OutputTokens += s.rnd.Int64N(100)
			row.CostUSD += float64(s.rnd.IntN(1000)) / 1e6
			if row.Requests > 1 && s.rnd.IntN(3) == 0 { // the tokens of a model count once an attempt has succeeded
				row.Errors++
				row.Causes[s.rnd.IntN(len(row.Causes))]++
			}
		}
		outcome := []string{"succeeded", "provider_failed", "left", "refused"}[s.rnd.IntN(4)]
		row.Call(s.rnd.Int64N(5000), s.rnd.Int64N(500), outcome, []string{"budget", "key", "model", "request"}[s.rnd.IntN(4)])
		e := summed{s.Clock.Now().UnixMilli(), n, []string{"codex", "curl", "other"}[s.rnd.IntN(3)],
			[]string{"", "a", "b", "c"}[s.rnd.IntN(4)], row}
		rep.Usage = usage.Add(rep.Usage, row)
		rep.Labels = usage.AddLabel(rep.Labels, usage.ByTool, "", e.tool, &row)
		if e.project != "" {
			rep.Labels = usage.AddLabel(rep.Labels, usage.ByName, "project", e.project, &row)
		}
		list = append(list, e)
	}
	raw, err := json.Marshal(rep)
	if err != nil {
		s.Fatal(err)
	}
	for {
		status, _ := s.Call("report", string(raw))
		if status == 200 {
			break
		}
		s.Loc.Storage(mid).Fault = nil
	}
	for i := range list {
		list[i].at = s.Clock.Now().UnixMilli()
	}
	s.entries = append(s.entries, list...)
}

// kill ends the program, which loses the last reports, each as a whole.
func (s *sums) kill() {
	s.obj.buffers = buffers{}
	left := s.OK("GET", "/api/usage?period=30d", "").Get("total.requests").Int()
	if left < int64(s.durable) || left > int64(len(s.entries)) { // each entry is a call
		s.Fatalf("%d calls after a kill, of %d to %d", left, s.durable, len(s.entries))
	}
	if left < int64(len(s.entries)) && s.entries[left].report == s.entries[max(left-1, 0)].report && left > 0 {
		s.Fatal("a part of a report was lost")
	}
	s.entries = s.entries[:left]
}

// check compares the sums of all groups.
func (s *sums) check() {
	s.Helper()
	for query, name := range map[string]func(e *summed) string{
		"groupBy=key":             func(e *summed) string { return e.KeyID },
		"groupBy=model":           func(e *summed) string { return e.Model },
		"groupBy=endpoint":        func(e *summed) string { return e.Endpoint },
		"groupBy=month":           func(e *summed) string { return storage.DayOf(e.at)[:7] },
		"groupBy=day":             func(e *summed) string { return storage.DayOf(e.at) },
		"groupBy=hour":            func(e *summed) string { return storage.HourOf(e.at) },
		"groupBy=tool":            func(e *summed) string { return e.tool },
		"groupBy=tag:project":     func(e *summed) string { return e.project },
		"groupBy=month,tool":      func(e *summed) string { return storage.DayOf(e.at)[:7] + e.tool },
		"groupBy=tool,key":        func(e *summed) string { return e.tool + e.KeyID },
		"groupBy=day,tag:project": func(e *summed) string { return storage.DayOf(e.at) + e.project },
	} {
		period := "&period=30d"
		if query == "groupBy=hour" {
			period = "&period=192h"
		}
		a := s.OK("GET", "/api/usage?"+query+period, "")
		got, want := map[string]string{}, map[string]usage.Row{}
		for _, r := range a.Get("data").Array() {
			key := r.Get("month").Str + r.Get("day").Str + r.Get("hour").Str + r.Get("tool").Str
			if tag := r.Get("tag").Str; tag != "" {
				key += tag[len("project="):]
			}
			key += r.Get("keyId").Str + r.Get("model").Str + r.Get("endpoint").Str
			got[key] = fmt.Sprint(r.Get("requests"), r.Get("refused"), r.Get("left"), r.Get("providerFailed"), r.Get("attempts"),
				r.Get("failedAttempts"), r.Get("inputTokens"), r.Get("outputTokens"), r.Get("latencyMs").Int(), r.Get("firstTokenMs").Int(),
				math.Round(r.Get("costUsd").Num*1e6), r.Get("failedBy.limited").Int(), r.Get("failedBy.refused").Int())
		}
		for i := range s.entries {
			row := want[name(&s.entries[i])]
			row.AddCounts(&s.entries[i].Row)
			want[name(&s.entries[i])] = row
		}
		for key, w := range want {
			text := fmt.Sprint(w.Calls, w.Refused(), w.LeftCalls, w.FailedCalls-w.Refused(), w.Requests, w.Errors, w.InputTokens,
				w.OutputTokens, w.LatencyMs, w.FirstTokenMs, math.Round(w.CostUSD*1e6), w.Causes[0], w.Causes[7])
			if got[key] != text {
				s.Fatalf("%s, %q: got %s, want %s", query, key, got[key], text)
			}
		}
		if len(got) != len(want) {
			s.Fatalf("%s: %d groups, want %d", query, len(got), len(want))
		}
	}
}

// metrics compares the counters with the model, and with those before.
func (s *sums) metrics() {
	s.Helper()
	sum := map[string]float64{}
	for _, f := range s.Want(200, "metrics", `{"keys":true}`).Array() {
		name := f.Get("name").Str
		for _, series := range f.Get("series").Array() {
			v, id := series.Get("value").Num, name+series.Get("values").Raw
			sum[name] += v
			if v < s.shown[id] {
				s.Fatalf("%s falls from %v to %v", id, s.shown[id], v)
			}
			s.shown[id] = v
		}
	}
	var all usage.Row
	for i := range s.entries {
		all.AddCounts(&s.entries[i].Row)
	}
	for name, want := range map[string]float64{"weir.requests": float64(all.Calls), "weir.attempts": float64(all.Requests),
		"weir.tokens": float64(all.InputTokens + all.OutputTokens), "weir.cost": all.CostUSD, "weir.key.requests": float64(all.Calls)} {
		if math.Abs(sum[name]-want) > 1e-6 {
			s.Fatalf("%s: got %v, want %v", name, sum[name], want)
		}
	}
	s.durable = len(s.entries) // what they show is written
}

// Random usage over days, kills and faults of the storage adds up the same by each group, and no
// counter falls.
func TestUsageAddsUpOverKillsFaultsAndMidnight(t *testing.T) {
	for seed := range uint64(4) {
		s := &sums{world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 7)), shown: map[string]float64{}}
		s.Create()
		s.metrics() // counts from here on
		for n := range 250 {
			s.report(n)
			wait := time.Duration(s.rnd.IntN(15_000)) * time.Millisecond
			s.Loc.Storage(mid).Fault = nil
			switch s.rnd.IntN(20) {
			case 0:
				wait = time.Hour
			case 1:
				wait = 7 * time.Hour
			case 2:
				s.kill()
			case 3:
				s.metrics()
			case 4:
				s.check()
			case 5:
				left := s.rnd.IntN(3)
				s.Loc.Storage(mid).Fault = func(string) bool { left--; return left == 0 }
			case 6:
				handed := s.obj.HandOver()
				s.obj.buffers = buffers{}
				s.obj.TakeOver(handed)
			}
			s.Clock.Add(wait)
			s.Loc.Alarms(s.Ctx)
		}
		s.Loc.Storage(mid).Fault = nil
		s.metrics()
		s.kill() // loses nothing: what the metrics have shown is written
		s.check()
	}
}
