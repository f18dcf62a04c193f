package manage

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
	"weir/pkg/machine/storage"
	"weir/pkg/setup"
	"weir/pkg/store"
	"weir/pkg/wire/weburl"
)

// settingsView shows every setting with the value that applies.
type settingsView struct {
	Strategy         string            `json:"strategy"`
	FirstByteSeconds int               `json:"firstByteSeconds"`
	IdleSeconds      int               `json:"idleSeconds"`
	EmbeddingInput   string            `json:"embeddingInputType"`
	ResponsesSocket  string            `json:"responsesWebSocket"`
	PromptCaching    string            `json:"promptCaching"`
	StreamCost       string            `json:"streamCost"`
	StatusFeeds      string            `json:"statusFeeds"`
	PublicStatus     string            `json:"publicStatus"`
	ClaudeOpus       string            `json:"claudeOpusModel,omitempty"` // these only if they are set
	ClaudeSonnet     string            `json:"claudeSonnetModel,omitempty"`
	ClaudeHaiku      string            `json:"claudeHaikuModel,omitempty"`
	ClaudeFable      string            `json:"claudeFableModel,omitempty"`
	DefaultModel     string            `json:"defaultModel,omitempty"`
	SmallModel       string            `json:"smallModel,omitempty"`
	ModelPrices      map[string]string `json:"modelPrices,omitempty"`
	TimeZone         string            `json:"timeZone"`
	KeyNetworks      string            `json:"keyNetworks"`
	TagsFrom         []string          `json:"tagsFrom,omitempty"`
	CapturePercent   int               `json:"capturePercent"`
	CaptureHours     int               `json:"captureHours"`
	TraceUpstream    []string          `json:"traceUpstream,omitempty"`
	MaxParallel      int               `json:"maxParallel"` // 0 is no limit
}

func viewSettings(s store.Settings) settingsView {
	v := settingsView{
		s.Strategy, s.FirstByteSeconds, s.IdleSeconds, s.EmbeddingInput, s.ResponsesSocket, s.PromptCaching, s.StreamCost,
		s.StatusFeeds, s.PublicStatus, s.ClaudeOpus, s.ClaudeSonnet, s.ClaudeHaiku, s.ClaudeFable, s.DefaultModel,
		s.SmallModel, s.ModelPrices, s.TimeZone, s.KeyNetworks, s.TagsFrom, s.CapturePercent, s.CaptureHoursOf(nil),
		s.TraceUpstream, s.MaxParallel,
	}
	v.Strategy = cmp.Or(v.Strategy, store.Priority)
	v.FirstByteSeconds = cmp.Or(v.FirstByteSeconds, int(store.FirstEvent.Seconds()))
	v.IdleSeconds = cmp.Or(v.IdleSeconds, int(store.Silence.Seconds()))
	v.EmbeddingInput = cmp.Or(v.EmbeddingInput, "document")
	v.TimeZone = cmp.Or(v.TimeZone, "UTC")
	v.KeyNetworks = cmp.Or(v.KeyNetworks, "on")
	v.ResponsesSocket = cmp.Or(v.ResponsesSocket, "on")
	v.PromptCaching = cmp.Or(v.PromptCaching, "off")
	v.StreamCost = cmp.Or(v.StreamCost, "off")
	v.StatusFeeds = cmp.Or(v.StatusFeeds, "on")
	v.PublicStatus = cmp.Or(v.PublicStatus, "off")
	return v
}

func (c *change) settingsGet() (any, error) {
	c.etag = c.changed("settings")
	return viewSettings(c.Settings()), nil
}

// settingsPatch changes the settings given; null goes back to the default.
func (c *change) settingsPatch() (any, error) {
	if err := c.match(c.changed("settings")); err != nil {
		return nil, err
	}
	in := c.input()
	in.only(append([]string{"strategy", "firstByteSeconds", "idleSeconds", "embeddingInputType", "responsesWebSocket",
		"promptCaching", "streamCost", "keyNetworks", "tagsFrom", "statusFeeds", "publicStatus", "timeZone", "modelPrices",
		"capturePercent", "captureHours", "traceUpstream", "maxParallel", "allowUnknown"},
		modelFields[:]...)...)
	s := applySettings(in, c.Settings())
	if unknown, _ := in.bool("allowUnknown"); in.Err == nil && !unknown {
		known := namesOf(c.Tx)
		for _, name := range modelFields {
			if model, _ := in.text(name, maxModelName); model != "" {
				known.checkModel(in, name, model)
			}
		}
		for name := range s.ModelPrices {
			if _, old := c.Settings().ModelPrices[name]; !old {
				known.checkModel(in, "modelPrices", name)
			}
		}
	}
	if s.TimeZone != "" && in.Err == nil && !c.o.knownZone(s.TimeZone) {
		in.fail("timeZone", "must be a time zone such as Europe/Berlin")
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	c.Touch("settings")
	c.Put(storage.SettingsRow, s)
	if s.KeyNetworks == "off" {
		c.DropNetworks("")
	}
	c.fields, c.etag = settingsNamed(in), c.changed("settings")
	return viewSettings(s), nil
}

// modelFields are the settings that name a model.
var modelFields = [...]string{"claudeOpusModel", "claudeSonnetModel", "claudeHaikuModel", "claudeFableModel",
	"defaultModel", "smallModel"}

const (
	maxPrices      = 500 // models that may have prices of their own
	maxPricesNamed = 20  // those that a record of the audit names
)

// settingsNamed returns the fields of a record, with the models whose prices are given: modelPrices.openai/gpt-5.
func settingsNamed(in *Input) []string {
	prices := in.values["modelPrices"]
	if !prices.IsObject() {
		return in.names
	}
	fields := slices.DeleteFunc(in.names, func(f string) bool { return f == "modelPrices" })
	most := len(fields) + maxPricesNamed
	prices.ForEach(func(k, _ gjson.Result) bool {
		if len(fields) == most {
			fields = append(fields, "modelPrices") // of further ones
			return false
		}
		fields = append(fields, "modelPrices."+strings.Clone(k.Str))
		return true
	})
	return fields
}

// applyPrices changes prices: {"openai/gpt-5": "1/8/0.1", "openai/gpt-4": null}. null for
// a model removes its price, for all removes every one.
func applyPrices(in *Input, s *store.Settings) {
	const field = "modelPrices"
	v, ok := in.values[field]
	switch {
	case !ok:
		return
	case v.Type == gjson.Null:
		s.ModelPrices = nil
		return
	case !v.IsObject():
		in.fail(field, "must be an object of models and prices")
		return
	}
	prices := maps.Clone(s.ModelPrices)
	if prices == nil {
		prices = map[string]string{}
	}
	v.ForEach(func(k, v gjson.Result) bool {
		name := field + "." + k.Str
		switch {
		case !isModelRef(k.Str) || len(k.Str) > maxModelName:
			in.fail(field, "must have names such as <alias>/<model>")
		case v.Type == gjson.Null:
			delete(prices, k.Str)
		case v.Type != gjson.String:
			in.fail(name, "must be a text such as 4/20/0.4/5")
		default:
			p, err := catalog.ParsePrice(v.Str)
			if err != nil {
				in.fail(name, "%v", err)
			}
			prices[strings.Clone(k.Str)] = string(p)
		}
		return in.Err == nil
	})
	if len(prices) > maxPrices {
		in.fail(field, "has more than %d models", maxPrices)
	}
	if s.ModelPrices = prices; len(prices) == 0 {
		s.ModelPrices = nil
	}
}

// maxModelName is the longest name of a model, in characters.
const maxModelName = 320

func applySettings(in *Input, s store.Settings) store.Settings {
	oneOf := func(name string, to *string, values ...string) {
		v, ok := in.text(name, 40)
		if !ok {
			return
		}
		for _, known := range append(values, "") {
			if v == known {
				*to = v
				return
			}
		}
		in.fail(name, "must be %s or %s", values[0], values[1])
	}
	number := func(name string, to *int, most int64) {
		v, ok := in.int(name, 1, most)
		if ok {
			*to = int(v)
		}
	}
	for i, to := range [...]*string{&s.ClaudeOpus, &s.ClaudeSonnet, &s.ClaudeHaiku, &s.ClaudeFable, &s.DefaultModel,
		&s.SmallModel} {
		v, ok := in.text(modelFields[i], maxModelName)
		if !ok {
			continue
		}
		if *to = catalog.PlainName(v); *to != "" && !isComboName(*to) && !isModelRef(*to) && !IsAliasName(*to) {
			in.fail(modelFields[i], "must be a combo, an alias or <alias>/<model>")
		}
		if (to == &s.DefaultModel || to == &s.SmallModel) && *to != "" && !setup.IsModel(*to) {
			in.fail(modelFields[i], notPlain)
		}
	}
	if v, ok := in.text("strategy", 40); ok {
		switch {
		case v == "":
			s.Strategy = store.Affinity
		case v == store.Fallback:
			s.Strategy = store.Priority
		case store.IsStrategy(v, false):
			s.Strategy = v
		case v == store.Cheapest:
			in.fail("strategy", "must not be cheapest: the accounts of a model cost the same. Use it for a combo")
		default:
			in.fail("strategy", "must be priority, round-robin, affinity, weighted, fastest or least-busy")
		}
	}
	oneOf("embeddingInputType", &s.EmbeddingInput, "document", "query")
	oneOf("responsesWebSocket", &s.ResponsesSocket, "on", "off")
	oneOf("promptCaching", &s.PromptCaching, "on", store.CachingAuto, "off")
	oneOf("streamCost", &s.StreamCost, "on", "off")
	if fields, ok := in.texts("tagsFrom", store.MaxTagFields, store.MaxTag); ok {
		s.TagsFrom = fields
		for i, field := range fields {
			if !store.IsTagField(field) {
				in.fail("tagsFrom["+strconv.Itoa(i)+"]", "must be user, safety_identifier or metadata.NAME")
			}
		}
	}
	oneOf("keyNetworks", &s.KeyNetworks, "on", "off")
	oneOf("statusFeeds", &s.StatusFeeds, "on", "off")
	if v, ok := in.text("publicStatus", 40); ok {
		switch v {
		case "", "off":
			s.PublicStatus = ""
		case store.StatusOfProviders, store.StatusOfModels:
			s.PublicStatus = v
		default:
			in.fail("publicStatus", "must be off, providers or models")
		}
	}
	if v, ok := in.text("timeZone", 64); ok {
		if s.TimeZone = v; v == "UTC" {
			s.TimeZone = ""
		}
	}
	number("firstByteSeconds", &s.FirstByteSeconds, 3600)
	number("idleSeconds", &s.IdleSeconds, 3600)
	number("captureHours", &s.CaptureHours, store.MaxCaptureHours)
	if v, ok := in.int("capturePercent", 0, 100); ok {
		s.CapturePercent = int(v)
	}
	if calls, ok := in.int("maxParallel", 0, store.MaxCalls); ok {
		s.MaxParallel = int(calls)
	}
	if hosts, ok := in.texts("traceUpstream", maxTraceHosts, maxHost); ok {
		s.TraceUpstream = nil
		for _, host := range hosts {
			host = strings.ToLower(host)
			if c, ok := weburl.Canonical("https://" + host); !ok || c != "https://"+host+"/" {
				in.fail("traceUpstream", "must be hosts such as vllm.example.com or vllm.example.com:8000")
			}
			s.TraceUpstream = append(s.TraceUpstream, host)
		}
	}
	applyPrices(in, &s)
	return s
}

// Bounds of traceUpstream.
const (
	maxTraceHosts = 32
	maxHost       = 260 // characters, with a port
)
