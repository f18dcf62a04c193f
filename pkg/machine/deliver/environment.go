package deliver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/secret"
)

// environment are the variables of OpenTelemetry that are read, and the fields of the kind
// otlp that they set.
var environment = [...]struct{ variable, field string }{
	{"OTEL_EXPORTER_OTLP_ENDPOINT", Endpoint},
	{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Endpoint + "." + Traces},
	{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", Endpoint + "." + Metrics},
	{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", Endpoint + "." + Logs},
	{"OTEL_EXPORTER_OTLP_HEADERS", "headers"},
	{"OTEL_EXPORTER_OTLP_PROTOCOL", Protocol},
	{"OTEL_EXPORTER_OTLP_COMPRESSION", "compression"},
	{"OTEL_EXPORTER_OTLP_TIMEOUT", "timeout"}, // milliseconds
	{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", Temporality},
	{"OTEL_RESOURCE_ATTRIBUTES", Resource},
	{"OTEL_SERVICE_NAME", "service"},
	{"OTEL_TRACES_SAMPLER", "sampler"},
	{"OTEL_TRACES_SAMPLER_ARG", Sample},
	{"OTEL_GENAI_CONVENTIONS", Conventions}, // weir's own: no variable of OpenTelemetry chooses names before 0.1.0
}

// EnvironmentValues are the values of the variables, in the order of EnvironmentVariables.
type EnvironmentValues [len(environment)]string

// EnvironmentVariables returns the names of the variables that Environment reads.
func EnvironmentVariables() (names EnvironmentValues) {
	for i, v := range environment {
		names[i] = v.variable
	}
	return names
}

// Environment returns the collector that the variables of OpenTelemetry name for all
// machines, or nil without an endpoint. Its errors name a variable.
func Environment(variables *EnvironmentValues, p Policy) (*Opened, error) {
	values := map[string]string{}
	for i, v := range environment {
		if text := strings.TrimSpace(variables[i]); text != "" {
			values[v.field] = text
		}
	}
	var signals []string
	for _, signal := range [...]string{Traces, Metrics, Logs} {
		if values[Endpoint] != "" || values[Endpoint+"."+signal] != "" {
			signals = append(signals, signal)
		}
	}
	if signals == nil {
		return nil, nil
	}
	values[Signals] = strings.Join(signals, ",")
	if err := sampler(values); err != nil {
		return nil, err
	}
	if name := values["service"]; name != "" {
		values[Resource] = strings.TrimPrefix(values[Resource]+",service.name="+name, ",")
	}
	for _, v := range environment {
		if why := checkVariable(v.field, values[v.field], p); why != "" {
			return nil, fmt.Errorf("%s %s", v.variable, why)
		}
	}
	d := &Opened{Destination: storage.Destination{ID: storage.OfEnvironment, Kind: OTLP, Options: values},
		Values: map[string]secret.Secret{}}
	for field, value := range values {
		d.Values[field] = secret.New(value)
	}
	return d, nil
}

// sampler sets the share of the traces by OTEL_TRACES_SAMPLER and its argument, a ratio.
func sampler(values map[string]string) error {
	kind, ratio := values["sampler"], values[Sample]
	delete(values, Sample)
	switch strings.TrimPrefix(kind, "parentbased_") {
	case "", "always_on":
	case "always_off":
		values[Sample] = "0"
	case "traceidratio":
		n, err := strconv.ParseFloat(ratio, 64)
		if ratio == "" {
			n, err = 1, nil
		}
		if err != nil || !(n >= 0 && n <= 1) {
			return errors.New("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1")
		}
		values[Sample] = strconv.FormatFloat(n*100, 'f', -1, 64)
	default:
		return fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not a sampler that is supported: always_on, always_off or traceidratio, with or without parentbased_", kind)
	}
	return nil
}

// checkVariable returns why a value is refused by the field of the kind that it sets.
func checkVariable(field, value string, p Policy) (why string) {
	if value == "" {
		return ""
	}
	if field == "timeout" {
		if n, err := strconv.Atoi(value); err != nil || n < 1 {
			return "must be milliseconds"
		}
	}
	name, own, _ := strings.Cut(field, ".")
	for i := range collector.Fields {
		f := &collector.Fields[i]
		if f.Name != name {
			continue
		}
		if f.Address {
			if _, _, err := p.Address(value); err != nil {
				return err.Error()
			}
		}
		if f.Values != nil && !slices.Contains(f.Values, value) {
			return "must be one of " + strings.Join(f.Values, ", ")
		}
		if f.Check != nil && own == "" {
			return f.Check(value)
		}
	}
	return ""
}
