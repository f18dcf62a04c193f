package ir

import (
	"slices"
	"strings"
)

// ReasoningForm is the form in which a chat upstream takes the reasoning
// effort.
type ReasoningForm uint8

// The forms. The zero value is OpenAI's reasoning_effort.
const (
	ReasoningEffort ReasoningForm = iota // reasoning_effort
	ReasoningObject                      // reasoning:{effort|max_tokens|enabled}
	ReasoningType                        // thinking:{type:enabled|disabled} and reasoning_effort
	ReasoningSwitch                      // thinking:{type:enabled|disabled} alone
	ReasoningEnable                      // enable_thinking, thinking_budget
	ReasoningNone                        // nothing is sent
)

// Deviations is how a chat upstream differs from OpenAI. The zero value is
// plain OpenAI.
type Deviations struct {
	MaxTokens string // name of the output limit; empty is max_completion_tokens
	Seed      string // name of seed; empty is seed
	// Drop lists top-level fields that the upstream refuses, DropReasoning
	// those that only its reasoning models refuse.
	Drop, DropReasoning []string
	// Only lists the top-level fields that the upstream supports if it refuses
	// all others; empty is all.
	Only  []string
	Set   [][2]string // fields sent with every request: name, raw JSON
	Think ReasoningForm
	// Efforts are the accepted values of reasoning_effort, separated by spaces;
	// empty is all. a=b means that the vendor treats a as b.
	Efforts string
	// Reasoning names the field of an assistant message in which reasoning is
	// sent back to the upstream; empty sends none.
	Reasoning string
	// Details reports that reasoning_details with signatures are supported.
	Details bool
	// CacheTexts reports that texts of messages may mark the end of a cached prefix
	// (cache_control), which Claude's models need.
	CacheTexts bool
	// Extra reports that Google's extra_content of tool calls is supported.
	Extra bool
	// System reports that the role developer is not supported.
	System bool
	// NoStreamOptions reports that stream_options is refused. Usage is sent
	// without it.
	NoStreamOptions bool
	// ToolID is the exact length of a tool call id, letters and digits; 0 is
	// any.
	ToolID int
	// ThinksFreely reports that a model that reasons refuses to be forced to call a
	// tool.
	ThinksFreely bool
	// ZeroSample reports that temperature 0 is sent as do_sample false.
	ZeroSample bool
	// Passes reports that a chat client's body passes byte for byte except for
	// the model and what the server has refused by name (Options.Refuses), which is
	// remembered for all of the server's models.
	Passes bool
	// Custom reports that custom tools are supported. Other upstreams get
	// functions instead.
	Custom bool
	// User is the maximum length of a user's id in characters; 0 is 128.
	User int
	// Anthropic is the anthropic_version that a Messages body carries instead
	// of the model (hosted Claude).
	Anthropic string
}

// MaxTokensName is the older name of max_completion_tokens.
const MaxTokensName = "max_tokens"

// compatible is any OpenAI-compatible server. A chat client's body passes.
// Translated requests have the older field names, which most of these servers
// support, and the reasoning of the conversation: some (DeepSeek, Kimi behind a
// gateway) refuse assistant messages without their reasoning_content.
var compatible = Deviations{Passes: true, MaxTokens: MaxTokensName, System: true, Reasoning: "reasoning_content",
	Details: true, Extra: true}

// deviations lists the providers that differ from compatible or from OpenAI.
// Source: the vendors' API references.
var deviations = [...]struct {
	id string
	Deviations
}{
	{"openai", Deviations{Custom: true}},
	{"azure", Deviations{Custom: true, User: 64}},
	{"openrouter", Deviations{CacheTexts: true, MaxTokens: MaxTokensName, Think: ReasoningObject, Reasoning: "reasoning",
		Details: true, Extra: true}},
	{"xai", Deviations{
		System: true, Efforts: "low medium high",
		Drop: []string{"logit_bias"}, DropReasoning: []string{"presence_penalty", "frequency_penalty", "stop"},
	}},
	{"deepseek", Deviations{
		MaxTokens: MaxTokensName, System: true, Think: ReasoningType, Reasoning: "reasoning_content", ThinksFreely: true,
		// How the vendor maps unsupported names, from its guide to the thinking
		// mode.
		Efforts: "minimal=low low medium=high high xhigh=high max",
		Drop:    []string{"seed", "logit_bias", "n", "parallel_tool_calls"},
	}},
	{"mistral", Deviations{
		MaxTokens: MaxTokensName, System: true, Seed: "random_seed", Efforts: "none high", NoStreamOptions: true, ToolID: 9,
		Drop: []string{
			"logprobs", "top_logprobs", "logit_bias", "user", "safety_identifier", "store", "service_tier",
			"verbosity", "prompt_cache_options", "prompt_cache_retention", "modalities", "web_search_options",
		},
	}},
	{"groq", Deviations{
		System: true, Efforts: "none low medium high", Reasoning: "reasoning",
		Drop: []string{"logprobs", "top_logprobs", "logit_bias", "prediction"},
	}},
	{"cerebras", Deviations{
		System: true, Drop: []string{"frequency_penalty", "presence_penalty", "logit_bias"},
	}},
	{"moonshot", Deviations{MaxTokens: MaxTokensName, System: true, Think: ReasoningType, Efforts: "low high max",
		Reasoning: "reasoning_content", ThinksFreely: true}},
	{"zai", Deviations{
		MaxTokens: MaxTokensName, System: true, Think: ReasoningSwitch, Reasoning: "reasoning_content", ZeroSample: true,
		Drop: []string{"seed", "n", "logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty",
			"parallel_tool_calls"},
	}},
	{"dashscope", Deviations{MaxTokens: MaxTokensName, System: true, Think: ReasoningEnable,
		Reasoning: "reasoning_content", ThinksFreely: true}},
	{"minimax", Deviations{
		MaxTokens: MaxTokensName, System: true, Think: ReasoningNone, Details: true,
		Set: [][2]string{{"reasoning_split", "true"}},
	}},
	{"cohere", Deviations{
		MaxTokens: MaxTokensName, System: true, Efforts: "none high",
		Drop: []string{"n", "logit_bias", "top_logprobs", "parallel_tool_calls", "service_tier"},
	}},
	{"ollama", Deviations{
		MaxTokens: MaxTokensName, System: true, Efforts: "none low medium high",
		Drop: []string{"tool_choice", "logit_bias", "user", "n", "logprobs", "top_logprobs"},
	}},
	{"ollama-cloud", Deviations{
		MaxTokens: MaxTokensName, System: true, Efforts: "none low medium high",
		Drop: []string{"tool_choice", "logit_bias", "user", "n", "logprobs", "top_logprobs"},
	}},
	{"perplexity", Deviations{
		MaxTokens: MaxTokensName, System: true, Efforts: "minimal low medium high",
		Drop: []string{"seed", "n", "logprobs", "top_logprobs", "logit_bias", "parallel_tool_calls"},
	}},
	{"gemini", Deviations{
		MaxTokens: MaxTokensName, System: true, Extra: true,
		// Its OpenAI endpoint returns 400 "Unknown name" for any other field,
		// such as seed, penalties, store, metadata and user.
		Only: []string{
			"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n",
			"stop",
			"tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "modalities", "audio",
			"extra_body",
		},
	}},
	{"vertex", Deviations{MaxTokens: MaxTokensName, System: true, Extra: true, Anthropic: "vertex-2023-10-16"}},
	{"bedrock", Deviations{MaxTokens: MaxTokensName, System: true, Anthropic: "bedrock-2023-05-31"}},
}

// DeviationsOf returns the deviations of a provider by its id. A provider that
// is not listed is treated as a compatible server. The result is shared and
// must not be changed.
func DeviationsOf(provider string) *Deviations {
	for i := range deviations {
		if deviations[i].id == provider {
			return &deviations[i].Deviations
		}
	}
	return &compatible
}

// IsOpenAI reports whether the upstream is OpenAI itself.
func (v *Deviations) IsOpenAI() bool { return v.MaxTokens == "" && !v.System && v.Drop == nil }

// IsOpenAIModel reports whether id is a model of OpenAI: at OpenAI itself, or by its
// name at a compatible server, where OpenAI's rules apply too.
func (v *Deviations) IsOpenAIModel(id string) bool {
	return v.IsOpenAI() || v.Passes && openaiNames(id)
}

// Drops reports whether the upstream refuses a top-level field; reasoning
// reports whether the model reasons.
func (v *Deviations) Drops(name string, reasoning bool) bool {
	if v.Only != nil && !slices.Contains(v.Only, name) {
		return true
	}
	for _, d := range v.Drop {
		if d == name {
			return true
		}
	}
	if reasoning {
		for _, d := range v.DropReasoning {
			if d == name {
				return true
			}
		}
	}
	return false
}

// Maps reports whether the vendor itself treats an effort as another.
func (v *Deviations) Maps(name string) bool { return strings.Contains(v.Efforts, name+"=") }

// RoundEffort returns the accepted effort that is nearest below the wanted one,
// or above it if none is below; "" if none is accepted.
func (v *Deviations) RoundEffort(name string) string {
	if v.Efforts == "" {
		return name
	}
	want := EffortIndex(name)
	best := -1
	for _, e := range strings.Fields(v.Efforts) {
		if e, meant, ok := strings.Cut(e, "="); ok {
			if e == name {
				return meant
			}
			continue
		}
		i := EffortIndex(e)
		switch {
		case name != "none" && e == "none": // never disables reasoning that the client wants
		case i == want:
			return e
		case name == "none":
		case best < 0, best > want && i < best, i < want && i > best:
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return Efforts[best].name
}
