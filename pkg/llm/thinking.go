package llm

import (
	"strconv"
	"strings"
)

// version is a model generation: 4.5 is {4, 5}.
type version struct{ major, minor int }

func (v version) before(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// parseVersion finds the version in the id of a model of a family: the first
// number of at most two digits after or before the family's name, and the one
// that follows it. Dates and sizes have more digits. Both orders exist:
// claude-3-5-sonnet-20241022, claude-sonnet-4-5-20250929, claude-opus-4.5.
func parseVersion(id string) (v version, ok bool) {
	n := 0
	for i := 0; i < len(id) && n < 2; {
		if id[i] < '0' || id[i] > '9' {
			// Only a dash or a dot keeps two numbers together.
			if n == 1 && id[i] != '-' && id[i] != '.' {
				break
			}
			i++
			continue
		}
		j := i
		for j < len(id) && id[j] >= '0' && id[j] <= '9' {
			j++
		}
		if j-i > 2 || i > 0 && letter(id[i-1]) || j < len(id) && letter(id[j]) {
			if n == 1 {
				break
			}
			i = j
			continue
		}
		num, _ := strconv.Atoi(id[i:j])
		if n == 0 {
			v.major = num
		} else {
			v.minor = num
		}
		n++
		i = j
	}
	return v, n > 0
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// claude is what a generation of Anthropic's models takes
// (docs/reference/api-shapes.md, 9).
type claude struct {
	family string // part of the id; empty is every family
	from   version
	// Forms of thinking: budget A, adaptive B, disabled C, betweenTools D.
	budget, adaptive, disabled, betweenTools bool
	disabledToHigh                           bool // C only at effort high or lower
	effort, xhigh                            bool
	sampling, forced, onByDefault            bool
	oneSampling                              bool // temperature or top_p, not both
	schema                                   bool // output_config.format
	maxOutput                                int64
}

// unlimited returns the max_tokens for a request without one: the maximum output
// of the model, so that no answer is cut off. Every current Claude supports
// 32,000; for other vendors' models the maximum is unknown.
func (c *claude) unlimited() int64 {
	switch {
	case c.maxOutput > 0:
		return c.maxOutput
	case c == &anyClaude:
		return 32000
	}
	return 4096
}

// claudes is ordered: the last row that fits an id decides. Each release of
// the vendor adds rows; an unknown newer model is taken as the newest row of
// its family or, of an unknown family, of all.
var claudes = [...]claude{
	{from: version{0, 0}, disabled: true, sampling: true, forced: true, maxOutput: 4096},
	{from: version{3, 5}, disabled: true, sampling: true, forced: true, maxOutput: 8192},
	{from: version{3, 7}, budget: true, disabled: true, sampling: true, forced: true, maxOutput: 64000},
	{from: version{4, 0}, budget: true, disabled: true, sampling: true, forced: true, maxOutput: 64000},
	{family: "opus", from: version{4, 0}, budget: true, disabled: true, sampling: true, forced: true, maxOutput: 32000},
	{family: "opus", from: version{4, 1}, budget: true, disabled: true, sampling: true, forced: true, schema: true, maxOutput: 32000},
	{from: version{4, 5}, budget: true, disabled: true, sampling: true, oneSampling: true, forced: true, schema: true, maxOutput: 64000},
	{family: "opus", from: version{4, 5}, budget: true, disabled: true, effort: true, sampling: true, oneSampling: true, forced: true, schema: true, maxOutput: 64000},
	{from: version{4, 6}, budget: true, adaptive: true, disabled: true, effort: true, sampling: true, oneSampling: true, forced: true, schema: true, maxOutput: 128000},
	{from: version{4, 7}, adaptive: true, disabled: true, effort: true, xhigh: true, forced: true, schema: true, maxOutput: 128000},
	{from: version{5, 0}, adaptive: true, disabled: true, effort: true, xhigh: true, forced: true, schema: true, maxOutput: 128000},
	{family: "opus", from: version{5, 0}, adaptive: true, disabled: true, disabledToHigh: true, effort: true, xhigh: true, forced: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "fable", from: version{5, 0}, adaptive: true, effort: true, xhigh: true, forced: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "fable", from: version{5, 1}, adaptive: true, effort: true, xhigh: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "opus", from: version{5, 5}, adaptive: true, effort: true, xhigh: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "sonnet", from: version{5, 5}, adaptive: true, betweenTools: true, effort: true, xhigh: true, onByDefault: true, schema: true, maxOutput: 128000},
	{family: "haiku", from: version{5, 5}, adaptive: true, disabled: true, disabledToHigh: true, effort: true, xhigh: true, forced: true, onByDefault: true, schema: true, maxOutput: 128000},
}

// otherClaude is a model of another vendor behind a Messages endpoint: they
// know the oldest form of everything.
var otherClaude = claude{budget: true, disabled: true, sampling: true, forced: true}

// anyClaude is a Claude without a version in its name, as on compatible servers.
// It gets what most generations support. A temperature is passed on, since a
// server that does not support it returns an error.
var anyClaude = claude{
	adaptive: true, disabled: true, effort: true, sampling: true, oneSampling: true, forced: true, schema: true,
}

// claudeOf finds the generation of a model id.
func claudeOf(id string) *claude {
	i := strings.Index(id, "claude")
	if i < 0 {
		return &otherClaude
	}
	id = id[i:]
	v, ok := parseVersion(id)
	if !ok {
		return &anyClaude
	}
	best := &claudes[0]
	for i := range claudes {
		c := &claudes[i]
		if !v.before(c.from) && strings.Contains(id, c.family) {
			best = c
		}
	}
	return best
}

// efforts in order. The budgets are a convention, no vendor's rule
// (docs/reference/api-shapes.md, 14.3).
var efforts = [...]struct {
	name    string
	budget  int64  // form A, and Gemini 2.5
	claude  string // form B
	level   string // Gemini 3
	rounded string // where only none, low, medium and high exist
}{
	{"none", 0, "low", "MINIMAL", "none"},
	{"minimal", 1024, "low", "MINIMAL", "low"},
	{"low", 1024, "low", "LOW", "low"},
	{"medium", 8192, "medium", "MEDIUM", "medium"},
	{"high", 24576, "high", "HIGH", "high"},
	{"xhigh", 32768, "xhigh", "HIGH", "high"},
	{"max", 32768, "max", "HIGH", "high"},
}

// effortIndex gives the place of a name in efforts, or -1.
func effortIndex(name string) int {
	for i := range efforts {
		if efforts[i].name == name {
			return i
		}
	}
	return -1
}

// effortOfBudget goes back from a budget.
func effortOfBudget(n int64) string {
	switch {
	case n <= 0:
		return "none"
	case n < 2048:
		return "low"
	case n < 12288:
		return "medium"
	case n < 28672:
		return "high"
	}
	return "xhigh"
}

// effortName is the effort that was asked, whichever way; "" when none was, or
// when the model shall decide.
func (q *request) effortName() string {
	switch {
	case q.think == thinkOff:
		return "none"
	case q.effort != "":
		return q.effort
	case q.think == thinkBudget:
		return effortOfBudget(q.budget)
	}
	return ""
}

// thought is the thinking part of a Messages request.
type thought struct {
	json   string // raw value of thinking; empty leaves it out
	effort string // output_config.effort
	max    int64  // max_tokens
	budget bool   // form A is on
}

// claudeThinking decides the form for a model. lost tells that the running
// turn has called tools and its thinking is gone.
func (q *request) claudeThinking(c *claude, max, limit int64, lost bool) (t thought) {
	t.max = max
	name := q.effortName()
	if name == "" && q.think == thinkUnset {
		return t
	}
	if name == "none" {
		switch {
		case c.disabled:
			t.json = `{"type":"disabled"}`
		case c.betweenTools:
			t.json = `{"type":"between_tools"}`
		case c.effort:
			t.effort = "low"
			q.dropField(fieldEffort)
		default:
			q.dropField(fieldEffort)
		}
		return t
	}
	i := effortIndex(name)
	if i < 0 && name != "" {
		q.dropField(fieldEffort)
		return t
	}
	if c.adaptive {
		t.json = `{"type":"adaptive"}`
		if i >= 0 && c.effort {
			if t.effort = efforts[i].claude; t.effort == "xhigh" && !c.xhigh {
				t.effort = "high"
			}
			if t.effort != name && q.effort != "" {
				q.dropEffort()
			}
		}
		return t
	}
	if !c.budget {
		q.dropField(fieldEffort)
		return t
	}
	if lost {
		t.json = `{"type":"disabled"}`
		q.dropField(fieldEffort)
		return t
	}
	n := q.budget
	if q.think != thinkBudget {
		n = 8192
		if i >= 0 {
			n = efforts[i].budget
		}
	}
	n = maxInt(n, 1024)
	if name == "max" && t.max > n {
		n = t.max - 1
	}
	if t.max <= n {
		t.max += n
		if limit > 0 && t.max > limit {
			t.max = limit
		}
		if n >= t.max {
			n = t.max - 1
		}
	}
	if n < 1024 {
		q.dropField(fieldEffort)
		return t
	}
	t.json = `{"type":"enabled","budget_tokens":` + strconv.FormatInt(n, 10) + `}`
	t.budget = true
	return t
}

func maxInt(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

// geminiThinking gives the thinkingConfig for a model, or "".
func geminiThinking(q *request, model string) string {
	name := q.effortName()
	if name == "" && q.think == thinkUnset {
		return ""
	}
	v, ok := geminiVersion(model)
	if !ok {
		v = version{3, 0}
	}
	if v.before(version{2, 5}) {
		q.dropField(fieldEffort)
		return ""
	}
	show := `"includeThoughts":true`
	if name == "none" {
		show = `"includeThoughts":false`
	}
	i := effortIndex(name)
	if i < 0 {
		if name != "" {
			q.dropField(fieldEffort)
		}
		return "{" + show + "}"
	}
	if !v.before(version{3, 0}) {
		level := efforts[i].level
		// The Pro models begin at LOW.
		if level == "MINIMAL" && strings.Contains(model, "pro") {
			level = "LOW"
		}
		if q.effort != "" && name != "none" && !strings.EqualFold(level, name) {
			q.dropEffort()
		}
		return "{" + show + `,"thinkingLevel":"` + level + `"}`
	}
	n := efforts[i].budget
	if q.think == thinkBudget {
		n = q.budget
	}
	// 2.5 Pro cannot be switched off: 128 is its least, 32768 its most; the
	// others go up to 24576.
	if strings.Contains(model, "pro") {
		n = min(maxInt(n, 128), 32768)
	} else {
		n = min(n, 24576)
	}
	return "{" + show + `,"thinkingBudget":` + strconv.FormatInt(n, 10) + "}"
}

// geminiVersion finds the generation in an id such as gemini-2.5-flash.
func geminiVersion(id string) (version, bool) {
	i := strings.Index(id, "gemini-")
	if i < 0 {
		return version{}, false
	}
	return parseVersion(id[i:])
}

// openaiReasons tells whether a model of OpenAI is one that reasons: it
// refuses sampling values, stop sequences and penalties.
func openaiReasons(id string) bool {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	if len(id) > 1 && id[0] == 'o' && id[1] >= '1' && id[1] <= '9' {
		return true
	}
	if rest, ok := strings.CutPrefix(id, "gpt-"); ok && !strings.Contains(id, "chat") {
		v, ok := parseVersion(rest)
		return ok && v.major >= 5
	}
	return false
}

// openaiNames reports whether an id is that of a model hosted by OpenAI. Its open
// models (gpt-oss) run on other servers, with their rules.
func openaiNames(id string) bool {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	return openaiReasons(id) || strings.HasPrefix(id, "chatgpt-") || strings.HasPrefix(id, "gpt-") && !strings.HasPrefix(id, "gpt-oss")
}

// openaiEfforts lists the efforts that a generation of OpenAI's models takes,
// separated by spaces; empty is all.
func openaiEfforts(id string) string {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	if len(id) > 1 && id[0] == 'o' && id[1] >= '1' && id[1] <= '9' {
		return "low medium high"
	}
	rest, ok := strings.CutPrefix(id, "gpt-")
	if !ok {
		return ""
	}
	switch v, _ := parseVersion(rest); {
	case v == version{5, 0}:
		return "minimal low medium high"
	case v == version{5, 1}:
		return "none low medium high"
	}
	return ""
}

// openaiEffort rounds an effort to what a model of OpenAI takes. Where
// thinking cannot be switched off the least is sent, and the field named.
func (q *request) openaiEffort(id, name string) string {
	v := Deviations{Efforts: openaiEfforts(id)}
	if name == "" {
		return ""
	}
	if e := v.round(name); e != "" {
		if e != name && q.effort != "" {
			q.dropEffort()
		}
		return e
	}
	q.dropField(fieldEffort)
	least, _, _ := strings.Cut(v.Efforts, " ")
	return least
}
