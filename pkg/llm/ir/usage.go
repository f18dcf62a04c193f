package ir

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Usage is the number of tokens of an answer. Input is the whole prompt,
// including what was read from and written to the cache. Output includes
// Reasoning.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	Known                                           bool // the upstream reported them, or they are Estimated
	Final                                           bool `json:"-"` // Output is the final count and replaces earlier ones

	// Begun reports that Output was stated when the answer began: it is not the whole of it.
	Begun bool `json:"-"`
	// Estimated reports that the gateway has computed counts that the upstream did not state.
	Estimated bool `json:",omitempty"`

	// Parts that have prices of their own: of CacheWrite those kept for an hour, and of
	// Input and Output those that are not text.
	CacheWriteHour          int64 `json:",omitempty"`
	AudioInput, AudioOutput int64 `json:",omitempty"`
	ImageInput, ImageOutput int64 `json:",omitempty"`
	// Of AudioInput and ImageInput those that were read from the cache, if CacheByKind is set:
	// without it, any of CacheRead may be audio or images.
	AudioCacheRead, ImageCacheRead int64 `json:",omitempty"`
	CacheByKind                    bool  `json:",omitempty"`
	// Apart is how much of Input a request read that the vendor made beside the client's,
	// as for a compaction: thresholds of prices hold for each of them.
	Apart int64 `json:",omitempty"`

	// Counts of tools that the vendor runs. ToolOptions are the options that their rates
	// depend on, between blanks; see catalog.ToolPrice.
	Searches     int64  `json:",omitempty"` // of the web
	Maps         int64  `json:",omitempty"` // 1 if a service of maps was asked
	FileSearches int64  `json:",omitempty"`
	Code         int64  `json:",omitempty"` // containers in which code was run, or runs
	ToolOptions  string `json:",omitempty"`
	ToolsFinal   bool   `json:"-"` // the counts of tools are final and replace earlier ones
	// Unrated names what is billed and has no rate in any price, between blanks.
	Unrated string `json:",omitempty"`

	// Service is the tier that the answer was served in; "" is the standard one.
	Service string `json:",omitempty"`
	// Cost is what the vendor says that it charges, in USD, if Charged is set.
	Cost    float64 `json:",omitempty"`
	Charged bool    `json:",omitempty"`
}

// Serve notes the service tier of an answer, as a vendor writes it.
func (u *Usage) Serve(tier string) {
	switch strings.ToLower(tier) {
	case "", "auto", "default", "standard", "standard_only", "on_demand", "global", "not_available", "unspecified",
		"traffic_type_unspecified":
		return
	}
	tier = strings.ToLower(strings.Clone(tier))
	if u.Service != "" && u.Service != tier {
		tier = u.Service + "+" + tier
	}
	u.Service = tier
}

// UsesTools reports whether tools of the vendor are billed.
func (u *Usage) UsesTools() bool { return u.Searches+u.Maps+u.FileSearches+u.Code > 0 }

// addWord adds a word to a list between blanks, unless it is there.
func addWord(list, word string) string {
	switch {
	case list == "":
		return word
	case slices.Contains(strings.Fields(list), word):
		return list
	}
	return list + " " + word
}

// ToolOption notes an option that the rate of a tool depends on.
func (u *Usage) ToolOption(name string) { u.ToolOptions = addWord(u.ToolOptions, name) }

// NoRate notes a part of what is billed that has no rate in any price.
func (u *Usage) NoRate(name string) { u.Unrated = addWord(u.Unrated, name) }

// ServerTools reads the tools that xAI has run, as it bills them:
//
//	{"web_search_calls", "x_search_calls", "file_search_calls", "code_interpreter_calls",
//	 "document_search_calls", "image_generation_calls", "mcp_calls"}
//
// Calls of MCP servers are free. See https://docs.x.ai/developers/tools/tool-usage-details.
func (u *Usage) ServerTools(v gjson.Result) {
	u.Searches = Count(v.Get("web_search_calls")) + Count(v.Get("x_search_calls"))
	u.FileSearches, u.Code = Count(v.Get("file_search_calls")), Count(v.Get("code_interpreter_calls"))
	u.ToolsFinal = true
	for _, name := range [...]string{"document_search", "image_generation"} {
		if Count(v.Get(name+"_calls")) > 0 {
			u.NoRate(name)
		}
	}
}

// Charge reads a member of a usage object that states the cost:
//
//	cost               USD, https://openrouter.ai/docs/use-cases/usage-accounting;
//	                   or {total_cost} in USD, https://docs.perplexity.ai/api-reference
//	cost_details       {upstream_inference_cost} of a key of the account's own at OpenRouter,
//	is_byok            if that is true: it comes in addition
//	cost_in_usd_ticks  1e-10 USD, https://docs.x.ai/developers/cost-tracking
func (u *Usage) Charge(object gjson.Result, name string, v gjson.Result) {
	usd := -1.0
	switch {
	case name == "cost" && v.Type == gjson.Number:
		usd = v.Num
		if object.Get("is_byok").Bool() {
			usd += object.Get("cost_details.upstream_inference_cost").Float()
		}
	case name == "cost" && v.IsObject() && v.Get("total_cost").Type == gjson.Number:
		usd = v.Get("total_cost").Num
	case name == "cost_in_usd_ticks" && v.Type == gjson.Number:
		usd = v.Num / 1e10
	}
	if usd >= 0 && usd < 1e6 {
		u.Cost, u.Charged = usd, true
	}
}

// Estimator estimates the tokens of a call whose answer does not state them.
type Estimator interface {
	InputTokens() int64
	OutputTokens() int64 // of the part of the answer that has arrived
}

// Bounds of what is believed of an upstream.
const (
	maxTokens = 10_000_000 // of an answer of a model without known limits
	// Lists of models lag behind, and a vendor's tools read a prompt several times.
	maxTimes      = 2
	maxTimesTools = 20
	// SureTokens are believed of any model.
	SureTokens = 8192
	maxUses    = 1000 // of each tool of a vendor
)

// Settle replaces the counts that the upstream did not state by estimates. As not stated
// count those that are missing or no numbers, an input of 0, an output of 0 beside a text,
// parts that are more than the whole, and what the model cannot have read or written:
// context and longest are its limits, 0 if they are not known. Without an Estimator, counts
// that cannot be true are not known. Absurd counts of tools have no rate. Settle reports
// whether counts were stated that cannot be true.
func (u *Usage) Settle(e Estimator, context, longest int64) (absurd bool) {
	times := int64(maxTimes)
	if u.UsesTools() || u.Apart > 0 {
		times = maxTimesTools
	}
	for _, tool := range [...]struct {
		uses *int64
		name string
	}{{&u.Searches, "web_search"}, {&u.FileSearches, "file_search"}, {&u.Code, "code_execution"}} {
		if *tool.uses > maxUses {
			*tool.uses, absurd = 0, true
			u.NoRate(tool.name)
		}
	}
	input := u.Known && u.Input <= bound(context, times) && u.CacheRead+u.CacheWrite <= u.Input &&
		u.AudioInput+u.ImageInput <= u.Input && u.AudioCacheRead+u.ImageCacheRead <= u.CacheRead
	output := u.Known && u.Output <= bound(longest, times) && u.AudioOutput+u.ImageOutput <= u.Output
	u.Reasoning = min(u.Reasoning, u.Output)
	absurd = absurd || u.Known && (!input || !output)
	if e == nil {
		if !input || !output || u.Input+u.Output == 0 && !u.Final {
			u.forgetInput()
			u.Known, u.Input = false, 0
			u.Output, u.Reasoning, u.AudioOutput, u.ImageOutput = 0, 0, 0, 0
		}
		return absurd
	}
	if !input || u.Input == 0 {
		u.forgetInput()
		u.Input, u.Estimated = min(e.InputTokens(), maxTokens), true
	}
	if !output {
		u.Output = 0
	}
	if !output || u.Output == 0 || u.Begun {
		if n := min(e.OutputTokens(), maxTokens); n > u.Output || !output || u.Begun {
			u.Output, u.Estimated = max(n, u.Output), true
			u.Reasoning, u.AudioOutput, u.ImageOutput = 0, 0, 0
		}
	}
	u.Known = true
	return absurd
}

// bound returns the most tokens that are believed of a model with a limit.
func bound(limit, times int64) int64 {
	if limit <= 0 || limit > maxTokens/times {
		return maxTokens
	}
	return max(limit*times, SureTokens)
}

// forgetInput removes the parts of the input.
func (u *Usage) forgetInput() {
	u.CacheRead, u.CacheWrite, u.CacheWriteHour = 0, 0, 0
	u.AudioInput, u.ImageInput, u.AudioCacheRead, u.ImageCacheRead, u.CacheByKind, u.Apart = 0, 0, 0, 0, false, 0
}

// Merge replaces earlier counts with later ones; streams report them in parts.
func (u *Usage) Merge(v Usage) {
	if !u.Known {
		u.Begun = v.Begun
	} else if v.Known && (v.Final || v.Output > 0 && !v.Begun) {
		u.Begun = false
	}
	u.Known = u.Known || v.Known
	u.Estimated = u.Estimated || v.Estimated
	u.Input = max(u.Input, v.Input)
	if u.Output = max(u.Output, v.Output); v.Final {
		u.Output = v.Output
	}
	u.CacheRead = max(u.CacheRead, v.CacheRead)
	u.CacheWrite = max(u.CacheWrite, v.CacheWrite)
	u.Reasoning = max(u.Reasoning, v.Reasoning)
	u.CacheWriteHour = max(u.CacheWriteHour, v.CacheWriteHour)
	u.AudioInput, u.AudioOutput = max(u.AudioInput, v.AudioInput), max(u.AudioOutput, v.AudioOutput)
	u.ImageInput, u.ImageOutput = max(u.ImageInput, v.ImageInput), max(u.ImageOutput, v.ImageOutput)
	u.AudioCacheRead, u.ImageCacheRead = max(u.AudioCacheRead, v.AudioCacheRead), max(u.ImageCacheRead, v.ImageCacheRead)
	u.CacheByKind = u.CacheByKind || v.CacheByKind
	u.Apart = max(u.Apart, v.Apart)
	u.Searches, u.Maps = max(u.Searches, v.Searches), max(u.Maps, v.Maps)
	u.FileSearches, u.Code = max(u.FileSearches, v.FileSearches), max(u.Code, v.Code)
	if v.ToolsFinal {
		u.Searches, u.Maps, u.FileSearches, u.Code, u.ToolsFinal = v.Searches, v.Maps, v.FileSearches, v.Code, true
	}
	for word := range strings.FieldsSeq(v.ToolOptions) {
		u.ToolOption(word)
	}
	for word := range strings.FieldsSeq(v.Unrated) {
		u.NoRate(word)
	}
	if v.Service != "" {
		u.Service = v.Service
	}
	if v.Charged {
		u.Cost, u.Charged = v.Cost, true
	}
}
