package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/testgw/objects"
	"weir/internal/testgw/sealed"
	"weir/pkg/llm"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/metrics"
)

const noon = int64(1_780_056_000_000)

func at(st storage.Storage, now int64) *storage.Tx {
	return storage.Open(st, sealed.MachineID, time.UnixMilli(now), func(*storage.Tx) int64 { return 0 })
}

// lines returns the lines of samples of families in a text.
func lines(families []metrics.Family) (out []string) {
	text := string(metrics.Text([]metrics.Part{{Machine: "m", Families: families}}, metrics.Format{}))
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

func TestMetricsOfUsage(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Create("my \"machine\"")
	ok := usage.Row{KeyID: "k", ConnectionID: "c", Provider: "openai", Model: "openai/gpt", Endpoint: "/v1/chat/completions",
		Requests: 3, InputTokens: 10, OutputTokens: 4, CacheReadTokens: 2, CacheWriteTokens: 1, ReasoningTokens: 3, CostUSD: 0.1}
	ok.Call(700, 90, store.Succeeded, "")
	ok.Call(70_000_000, 0, store.ProviderFailed, "")
	limited := usage.Row{KeyID: "k", ConnectionID: "c", Provider: "openai", Model: "openai/other", Endpoint: "/v1/chat/completions", Requests: 2, Errors: 2, Unpriced: 1}
	limited.Causes[0] = 2
	refused := usage.Row{KeyID: "k", Endpoint: "/v1/chat/completions"}
	refused.Call(0, 0, store.Refused, store.RefusedByBudget)
	refused.Call(1, 0, store.NoAccount, "")
	tx.AddUsage(noon, []usage.Row{ok, limited, refused})
	got := lines(Families(tx, Options{Keys: true}))
	for _, want := range []string{
		`weir_requests_total{machine="m",endpoint="/v1/chat/completions",outcome="succeeded",reason=""} 1`,
		`weir_requests_total{machine="m",endpoint="/v1/chat/completions",outcome="provider_failed",reason=""} 1`,
		`weir_requests_total{machine="m",endpoint="/v1/chat/completions",outcome="no_account",reason=""} 1`,
		`weir_requests_total{machine="m",endpoint="/v1/chat/completions",outcome="refused",reason="budget"} 1`,
		`weir_attempts_total{machine="m",provider="openai",connection="c",result="limited"} 2`,
		`weir_attempts_total{machine="m",provider="openai",connection="c",result="ok"} 3`,
		`weir_tokens_total{machine="m",provider="openai",model="openai/gpt",direction="input"} 10`,
		`weir_tokens_total{machine="m",provider="openai",model="openai/gpt",direction="output"} 4`,
		`weir_tokens_total{machine="m",provider="openai",model="openai/gpt",direction="cache_read"} 2`,
		`weir_tokens_total{machine="m",provider="openai",model="openai/gpt",direction="cache_write"} 1`,
		`weir_tokens_total{machine="m",provider="openai",model="openai/gpt",direction="reasoning"} 3`,
		`weir_cost_usd_total{machine="m",provider="openai",model="openai/gpt"} 0.1`,
		`weir_request_seconds_bucket{machine="m",provider="openai",le="0.512"} 0`,
		`weir_request_seconds_bucket{machine="m",provider="openai",le="1.024"} 1`,
		`weir_request_seconds_bucket{machine="m",provider="openai",le="131.072"} 1`,
		`weir_request_seconds_bucket{machine="m",provider="openai",le="+Inf"} 2`,
		`weir_request_seconds_sum{machine="m",provider="openai"} 70000.7`,
		`weir_first_token_seconds_bucket{machine="m",provider="openai",le="0.256"} 1`,
		`weir_first_token_seconds_sum{machine="m",provider="openai"} 0.09`,
		`weir_first_token_seconds_count{machine="m",provider="openai"} 1`,
		`weir_key_requests_total{machine="m",key="k"} 4`,
		`weir_key_tokens_total{machine="m",key="k"} 14`,
		`weir_key_cost_usd_total{machine="m",key="k"} 0.1`,
		`weir_machine_info{machine="m",name="my \"machine\""} 1`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no line %s", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
	for _, line := range lines(Families(tx, Options{})) {
		if strings.Contains(line, "weir_key_") || strings.Contains(line, `key="`) {
			t.Errorf("a series of a key without being asked for: %s", line)
		}
	}
}

// The metrics of the GenAI conventions come on request, in the names of one version.
func TestMetricsOfConventions(t *testing.T) {
	st := objects.NewStorage()
	tx := at(st, noon)
	tx.Create("")
	row := func(endpoint, model string) usage.Row {
		r := usage.Row{ConnectionID: "c", Provider: "vertex", Model: model, Endpoint: endpoint, Requests: 1}
		r.Price("", &llm.Usage{Input: 17, Output: 4, CacheRead: 3, Known: true}, nil)
		r.Call(700, 90, store.Succeeded, "")
		return r
	}
	invented := usage.Row{ConnectionID: "c", Provider: "vertex", Model: "a/invented", Endpoint: "/v1/responses", Requests: 1, Errors: 1}
	tx.AddUsage(noon, []usage.Row{row("/v1/chat/completions", "a/x/gemini"), row("/v1/messages", "a/x/gemini"),
		row("/v1/chat/completions", "b/x/gemini"), row("/v1/embeddings", "a/vec"), invented})
	for _, line := range lines(Families(tx, Options{Keys: true})) {
		if strings.Contains(line, "gen_ai") {
			t.Errorf("without being asked for: %s", line)
		}
	}
	const chat = `{machine="m",gen_ai_operation_name="chat",gen_ai_provider_name="gcp.vertex_ai",gen_ai_request_model="x/gemini"`
	const vector = `{machine="m",gen_ai_operation_name="embeddings",gen_ai_provider_name="gcp.vertex_ai",gen_ai_request_model="vec"`
	for version, want := range map[string][]string{
		"0.1.0": {
			`gen_ai_client_inference_duration_seconds_bucket` + chat + `,le="0.512"} 0`,
			`gen_ai_client_inference_duration_seconds_bucket` + chat + `,le="1.024"} 3`,
			`gen_ai_client_inference_duration_seconds_sum` + chat + `} 2.1`,
			`gen_ai_client_inference_time_to_first_chunk_seconds_bucket` + chat + `,le="0.128"} 3`,
			`gen_ai_client_inference_operation_input_tokens_bucket` + chat + `,le="16"} 0`,
			`gen_ai_client_inference_operation_input_tokens_bucket` + chat + `,le="64"} 3`,
			`gen_ai_client_inference_operation_output_tokens_bucket` + chat + `,le="4"} 3`,
			`gen_ai_client_inference_operation_output_tokens_bucket` + chat + `,le="67108864"} 3`,
			`gen_ai_client_inference_usage_input_tokens_total` + chat + `,gen_ai_token_modality="unknown"} 51`,
			`gen_ai_client_inference_usage_cache_read_input_tokens_total` + chat + `,gen_ai_token_modality="unknown"} 9`,
			`gen_ai_client_operation_duration_seconds_count` + vector + `} 1`,
		},
		"1.41": {
			`gen_ai_client_operation_duration_seconds_count` + chat + `} 3`,
			`gen_ai_client_operation_duration_seconds_count` + vector + `} 1`,
			`gen_ai_client_operation_time_to_first_chunk_seconds_count` + chat + `} 3`,
			`gen_ai_client_token_usage_bucket` + chat + `,gen_ai_token_type="input",le="64"} 3`,
			`gen_ai_client_token_usage_sum` + chat + `,gen_ai_token_type="output"} 12`,
		},
	} {
		got := lines(Families(tx, Options{Conventions: version}))
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s: no line %s", version, line)
			}
		}
		for i, line := range got {
			if strings.Contains(line, "invented") || version == "1.41" && strings.Contains(line, "inference") ||
				version == "0.1.0" && (strings.Contains(line, "operation_duration_seconds_count"+chat) || strings.Contains(line, "token_usage")) {
				t.Errorf("%s: %s", version, line)
			}
			name, _, _ := strings.Cut(line, "} ")
			if slices.ContainsFunc(got[:i], func(other string) bool { return strings.HasPrefix(other, name+"} ") }) {
				t.Errorf("%s comes twice", name)
			}
		}
		if t.Failed() {
			t.Log(strings.Join(got, "\n"))
		}
	}
}

// A machine with more of everything than has a series has at most 2,000 lines.
func TestLinesAreBounded(t *testing.T) {
	st := objects.NewStorage()
	now := noon
	first := at(st, now)
	first.Create("m")
	first.Lifetime()
	for i := range 300 {
		id := fmt.Sprintf("c%019d", i)
		first.PutConnection(&storage.Connection{Connection: store.Connection{ID: id, Provider: "p", Name: "n", Status: []string{"", "needs_reauth", "needs_credential"}[i%3]}})
		first.PutBudget(&storage.Budget{Budget: store.Budget{ID: id, Unit: store.USD, Limit: 5, Window: "day"}})
	}
	for i := range 40 {
		id := fmt.Sprintf("d%019d", i)
		first.PutDestination(&storage.Destination{ID: id, Name: "n", Kind: "otlp"})
		first.Lose(id, 3)
	}
	first.Lose(storage.OfEnvironment, 1)
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	reasons := []string{store.RefusedByKeyLimit, store.RefusedByBudget, store.RefusedByConcurrency, store.RefusedByKey, store.RefusedByModel, store.RefusedByRequest}
	for i := range 40 {
		tx := at(st, now)
		var list []usage.Row
		for j := range 50 {
			name := fmt.Sprint(i*50 + j)
			row := usage.Row{KeyID: fmt.Sprint("k", j+i), ConnectionID: "c" + name, Provider: "p" + fmt.Sprint(i), Model: "m" + name, Endpoint: fmt.Sprint("/v1/", j+i),
				Requests: 10, Errors: 8, InputTokens: 1, OutputTokens: 1, CacheReadTokens: 1, CacheWriteTokens: 1, ReasoningTokens: 1, CostUSD: 1, Unpriced: 1}
			for c := range row.Causes {
				row.Causes[c] = 1
			}
			for _, reason := range reasons {
				row.Call(1, 1, store.Refused, reason)
			}
			for _, outcome := range []string{store.Succeeded, store.ProviderFailed, store.NoAccount, store.Left} {
				row.Call(1, 1, outcome, "")
			}
			list = append(list, row)
		}
		tx.AddUsage(now, list)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		st.Flush()
	}
	var before int
	for day := range 4 {
		tx := at(st, now+int64(day)*storage.Day)
		got := lines(Families(tx, Options{Keys: true}))
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if len(got) > 2000 || len(got) < 1500 || day > 0 && len(got) != before {
			t.Errorf("day %d: %d lines, before %d", day, len(got), before)
		}
		before = len(got)
	}
	t.Logf("%d lines", before)
	if n := len(lines(Families(at(st, now), Options{Conventions: "0.1.0"}))) - len(lines(Families(at(st, now), Options{}))); n > 3500 {
		t.Errorf("the conventions add %d lines", n)
	}
	got := lines(Families(at(st, now), Options{}))
	for _, want := range []string{
		`weir_export_dropped_total{machine="m",destination="d0000000000000000003",name="n",kind="otlp"} 3`,
		`weir_export_dropped_total{machine="m",destination="environment",name="",kind="otlp"} 1`,
		`weir_export_queued{machine="m",destination="d0000000000000000003",name="n",kind="otlp"} 0`,
		`weir_budget_limit{machine="m",budget="c0000000000000000003",name="",unit="usd",window="day"} 0.000000005`,
		`weir_budget_used_ratio{machine="m",budget="c0000000000000000003",name="",unit="usd",window="day"} 0`,
		`weir_connection_state{machine="m",connection="other",name="",provider="",state="needs_reauth"} 33`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no line %s", want)
		}
	}
}

// named returns the names of metrics in a text, without the endings of histograms.
func named(text string) (names []string) {
	for _, name := range regexp.MustCompile(`weir_[a-z_]+|gen_ai_client[a-z_]+`).FindAllString(text, -1) {
		for _, ending := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, ending)
		}
		names = append(names, name)
	}
	return names
}

// known returns the names of all metrics: those of the table, and those of a process, which
// other packages have.
func known(t *testing.T) (names []string) {
	var all []metrics.Family
	for i := range table {
		all = append(all, table[i].Family)
	}
	for i := range all { // as a text has them
		text := string(metrics.Text([]metrics.Part{{Families: all[i : i+1]}}, metrics.Format{}))
		names = append(names, strings.Fields(text)[2])
	}
	for _, path := range []string{"../../api/metrics.go", "../../gateway/app.go", "../../../server/program/metrics.go"} {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"weir\.([a-z_.]+)"(?:, (?:Unit: )?"(\w*)")?`).FindAllStringSubmatch(string(code), -1) {
			f := metrics.Family{Name: "weir." + m[1], Unit: m[2]}
			text := string(metrics.Text([]metrics.Part{{Families: []metrics.Family{f}}}, metrics.Format{}))
			names = append(names, strings.Fields(text)[2])
		}
	}
	return names
}

func TestGuideListsEveryMetric(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	names := known(t)
	if len(names) < 25 {
		t.Fatalf("%d metrics: %v", len(names), names)
	}
	for _, name := range names {
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("%s is not in the guide", name)
		}
	}
	for _, name := range named(string(guide)) {
		if !slices.Contains(names, name) {
			t.Errorf("the guide names %s, which does not exist", name)
		}
	}
}

// Dashboards and alert rules ask for metrics that exist.
func TestDashboardsAndRulesNameKnownMetrics(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/observability/dashboards/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v %v", files, err)
	}
	names, asked := known(t), map[string]bool{}
	for _, path := range append(files, "../../../deploy/observability/rules.yml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named(string(text)) {
			asked[name] = true
			if !slices.Contains(names, name) {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	}
	for _, name := range names {
		if !asked[name] && !strings.Contains(name, "_key_") && !strings.HasPrefix(name, "gen_ai_") {
			t.Errorf("no dashboard or rule shows %s", name)
		}
	}
}
