package deliver

import (
	"strings"
	"testing"

	"weir/pkg/machine/storage"
)

// environmentOf reads variables without their prefix OTEL_.
func environmentOf(set map[string]string) (*Opened, error) {
	values := EnvironmentValues{}
	for i, name := range EnvironmentVariables() {
		values[i] = set[strings.TrimPrefix(name, "OTEL_")]
	}
	return Environment(&values, Policy{})
}

func TestEnvironmentNamesACollector(t *testing.T) {
	const base = "https://otel.example.com"
	for name, tt := range map[string]struct {
		set  map[string]string
		want map[string]string
	}{
		"base": {map[string]string{"EXPORTER_OTLP_ENDPOINT": base + "/otlp/"},
			map[string]string{"traces": base + "/otlp/v1/traces", "logs": base + "/otlp/v1/logs", Signals: "traces,metrics,logs", Sample: ""}},
		"one signal": {map[string]string{"EXPORTER_OTLP_METRICS_ENDPOINT": base + "/m?x=1"},
			map[string]string{"metrics": base + "/m?x=1", Signals: "metrics"}},
		"base and one signal": {map[string]string{"EXPORTER_OTLP_ENDPOINT": base, "EXPORTER_OTLP_LOGS_ENDPOINT": base + "/l"},
			map[string]string{"logs": base + "/l", "traces": base + "/v1/traces", Signals: "traces,metrics,logs"}},
		"ratio": {map[string]string{"EXPORTER_OTLP_ENDPOINT": base, "TRACES_SAMPLER": "parentbased_traceidratio", "TRACES_SAMPLER_ARG": "0.25"},
			map[string]string{Sample: "25"}},
		"ratio without a number": {map[string]string{"EXPORTER_OTLP_ENDPOINT": base, "TRACES_SAMPLER": "traceidratio"}, map[string]string{Sample: "100"}},
		"never":                  {map[string]string{"EXPORTER_OTLP_ENDPOINT": base, "TRACES_SAMPLER": "always_off", "TRACES_SAMPLER_ARG": "1"}, map[string]string{Sample: "0"}},
		"conventions":            {map[string]string{"EXPORTER_OTLP_ENDPOINT": base, "GENAI_CONVENTIONS": "1.41"}, map[string]string{Conventions: "1.41"}},
		"service": {map[string]string{"EXPORTER_OTLP_ENDPOINT": base, "SERVICE_NAME": "w", "RESOURCE_ATTRIBUTES": "service.name=v,a=b"},
			map[string]string{"service.name": "w"}},
	} {
		d, err := environmentOf(tt.set)
		if err != nil || d.ID != storage.OfEnvironment || d.Kind != OTLP {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for what, want := range tt.want {
			got := d.Value(what)
			switch what {
			case Traces, Metrics, Logs:
				got = signalURL(d, what)
			case "service.name":
				got = ResourceOf(d.Options)[0].Str
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", name, what, got, want)
			}
		}
	}
	if d, err := environmentOf(map[string]string{"SERVICE_NAME": "w"}); d != nil || err != nil {
		t.Errorf("without an endpoint: %v %v", d, err)
	}
}

func TestEnvironmentNamesTheWrongVariable(t *testing.T) {
	const base = "https://otel.example.com"
	for variable, value := range map[string]string{
		"EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "EXPORTER_OTLP_TRACES_ENDPOINT": "ftp://x", "EXPORTER_OTLP_PROTOCOL": "grpc",
		"EXPORTER_OTLP_COMPRESSION": "zstd", "EXPORTER_OTLP_TIMEOUT": "10s", "EXPORTER_OTLP_HEADERS": "no pair", "TRACES_SAMPLER": "jaeger_remote",
		"RESOURCE_ATTRIBUTES": "a=%zz", "GENAI_CONVENTIONS": "1.36",
	} {
		set := map[string]string{"EXPORTER_OTLP_LOGS_ENDPOINT": base, variable: value}
		if _, err := environmentOf(set); err == nil || !strings.HasPrefix(err.Error(), "OTEL_"+variable) {
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
}

func TestFieldsOfCollectorsAreChecked(t *testing.T) {
	for i := range collector.Fields {
		f := &collector.Fields[i]
		good, bad := map[string][]string{
			Endpoint: {"https://a.example/x"}, "headers": {"a=b", "authorization=Bearer%20x, x=", ""}, Signals: {"traces", "logs, metrics"},
			Sample: {"0", "100", "12.5"}, Resource: {"deployment.environment.name=prod"},
		}[f.Name], map[string][]string{
			Endpoint: {"https://a.example/?x=1"}, "headers": {"a", "a b=c", "é=c", "a=%0Ab", "=b"}, Signals: {"", "spans"},
			Sample: {"-1", "101", "NaN", "x"}, Resource: {"x"},
		}[f.Name]
		if f.Check == nil {
			continue
		}
		for _, v := range good {
			if why := f.Check(v); why != "" {
				t.Errorf("%s %q: %s", f.Name, v, why)
			}
		}
		for _, v := range bad {
			if f.Check(v) == "" {
				t.Errorf("%s %q is accepted", f.Name, v)
			}
		}
	}
}
