package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed requests.json
var requestsJSON []byte

// requestWords are what statuses mean, and what accounts did by the code of the error, else by its status. The
// dashboard reads them from the same file.
var requestWords = func() (words struct{ Statuses, Failures map[string]string }) {
	if err := json.Unmarshal(requestsJSON, &words); err != nil {
		panic("requests.json: " + err.Error())
	}
	return words
}()

// unreachable is the code of an attempt without an answer, for which a 502 stands.
const unreachable = "upstream_unreachable"

// statusText returns a status with its meaning: 429 rate limited.
func statusText(status int, code string) string {
	if code == unreachable {
		return "unreachable"
	}
	n := strconv.Itoa(status)
	return strings.TrimSpace(n + " " + requestWords.Statuses[n])
}

// failureText returns what an account did instead of answering: refused the key.
func failureText(status int, code string) string {
	n := strconv.Itoa(status)
	other := "answered with status " + n
	if status >= 500 {
		other = "had an error"
	}
	return cmp.Or(requestWords.Failures[code], requestWords.Failures[n], other)
}

func milliseconds(n int64) string { return strconv.FormatInt(n, 10) + " ms" }

// row is a request of GET /api/requests.
type row struct {
	ID, KeyID, Endpoint, Asked, Model, Provider, ConnectionID string
	Error, Outcome, Reason, Message, Tool, TraceParent        string
	At, LatencyMs, FirstMs, SentMs                            int64
	Status, Attempts                                          int
	Failed                                                    []attempt
	Dropped, Tags, UnpricedParts                              []string
	InputTokens, OutputTokens, ReasoningTokens                int64
	CacheReadTokens                                           int64
	CostUSD                                                   float64
	Priced, Estimated, Captured                               bool
}

// attempt is an attempt that failed.
type attempt struct {
	ConnectionID, Provider, Model, Code, Text string
	Status                                    int
	SentMs, Ms                                int64
}

// request is a request as it is shown.
type request struct {
	row
	*app
}

// left reports whether the client left before the end of the answer.
func (r *request) left() bool { return r.Status == 499 || r.Error == "client_closed" }

// answered reports whether the account of the last attempt has answered, at least in part.
func (r *request) answered() bool {
	return r.Attempts > len(r.Failed) && r.ConnectionID != "" && (r.left() || r.Status < 400)
}

// account returns the name of an account, without one that of its provider.
func (r *request) account(id, provider string) string {
	return cmp.Or(r.nameOf(id), providerName(provider))
}

// what returns what became of the request, as a sentence.
func (r *request) what() string {
	var tried []string
	for i := range r.Failed {
		f := &r.Failed[i]
		tried = append(tried, r.account(f.ConnectionID, f.Provider)+" "+failureText(f.Status, f.Code))
	}
	served := r.account(r.ConnectionID, r.Provider)
	switch {
	case r.left():
		return "The client disconnected before the end of the answer."
	case r.Outcome == "refused" && r.Reason == "request":
		return "Refused by weir: invalid request."
	case r.Outcome == "refused":
		return "Refused by weir: " + spaced(cmp.Or(r.Reason, strconv.Itoa(r.Status))) + "."
	case r.Outcome == "no_account":
		return "No account could be tried."
	case r.Status >= 400 && len(tried) > 0:
		return "Failed: " + strings.Join(tried, ", then ") + "."
	case r.Status >= 400:
		return "Failed: " + statusText(r.Status, r.Error) + "."
	case r.Error != "":
		return "Interrupted: " + served + " " + failureText(r.Status, r.Error) + "."
	case len(tried) > 0:
		return "Answered by " + served + ", after " + strings.Join(tried, " and ") + "."
	}
	return "Answered by " + served + "."
}

// tokens returns a number of tokens, and how many of them are of a sort.
func (r *request) tokens(n, part int64, sort string) string {
	text := strconv.FormatInt(n, 10)
	switch {
	case n == 0:
		return ""
	case r.Estimated:
		text = "≈ " + text
	}
	if part > 0 {
		text += ", " + strconv.FormatInt(part, 10) + " of them " + sort
	}
	return text
}

// cost returns the cost in words, or what keeps it unknown.
func (r *request) cost() string {
	text := "unknown"
	if r.Priced || r.CostUSD > 0 {
		text = dollars(r.CostUSD, !r.Priced)
	}
	switch {
	case r.Priced && r.Estimated:
		return "≈ " + text
	case r.Priced:
		return text
	case len(r.UnpricedParts) > 0:
		return text + ", no price for " + strings.ReplaceAll(strings.Join(r.UnpricedParts, ", "), "_", " ")
	case r.InputTokens > 0 || r.CostUSD > 0:
		return text + ", no price is known"
	}
	return ""
}

// facts returns what is known of the request, a line each.
func (r *request) facts() table {
	status, latency, model := strconv.Itoa(r.Status), milliseconds(r.LatencyMs), cmp.Or(r.Asked, r.Model)
	if r.Attempts > 0 {
		status = statusText(r.Status, r.Error)
	}
	if r.Error != "" && r.Message == "" {
		status += " (" + r.Error + ")"
	}
	if r.FirstMs > 0 {
		latency += ", first token after " + milliseconds(r.FirstMs)
	}
	if r.Model != "" && r.Model != model {
		model += " → " + r.Model
	}
	account, provider, trace := "", "", ""
	if r.answered() {
		account, provider = r.account(r.ConnectionID, r.Provider), providerName(r.Provider)
	}
	if parts := strings.Split(r.TraceParent, "-"); len(parts) > 1 {
		trace = parts[1]
	}
	t := table{columns: make([]column, 2), wrap: true}
	for _, one := range [...][2]string{
		{"Request", r.ID}, {"Time", time.UnixMilli(r.At).Format(time.DateTime)}, {"Status", status}, {"Endpoint", r.Endpoint},
		{"Key", cmp.Or(r.nameOf(r.KeyID), r.KeyID)}, {"Tool", r.Tool}, {"Tags", strings.Join(r.Tags, ", ")}, {"Model", model},
		{"Account", account}, {"Provider", provider}, {"Latency", latency}, {"Input", r.tokens(r.InputTokens, r.CacheReadTokens, "cached")},
		{"Output", r.tokens(r.OutputTokens, r.ReasoningTokens, "reasoning")}, {"Cost", r.cost()}, {"Not sent", changedFields(r.Dropped, false)},
		{"Set by weir", changedFields(r.Dropped, true)}, {"Trace", trace},
	} {
		if one[1] != "" {
			t.texts(one[:]...)
		}
	}
	return t
}

// attempts returns the attempts, a line each, and what providers said.
func (r *request) attempts() (t table, said []string) {
	t.columns = []column{{title: "TRY", right: true}, {title: "ACCOUNT"}, {title: "PROVIDER"}, {title: "MODEL"}, {title: "RESULT"},
		{title: "DURATION", right: true}}
	add := func(id, provider, model, result, color string, ms int64) {
		t.texts(strconv.Itoa(len(t.rows)+1), r.account(id, provider), providerName(provider), model, result, milliseconds(ms))
		t.rows[len(t.rows)-1][4].color = color
	}
	for i := range r.Failed {
		f := &r.Failed[i]
		add(f.ConnectionID, f.Provider, f.Model, statusText(f.Status, f.Code), red, f.Ms)
		text := f.Text
		if text != "" && f.Code != "" {
			text += " (" + f.Code + ")"
		}
		if text = r.account(f.ConnectionID, f.Provider) + ": " + text; f.Text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	if r.Attempts > len(r.Failed) && r.ConnectionID != "" {
		result, color := "answered", green
		if r.Error != "" || !r.answered() {
			result, color = "interrupted", yellow
		}
		add(r.ConnectionID, r.Provider, r.Model, result, color, max(0, r.LatencyMs-r.SentMs))
	}
	return t, said
}

// timing returns the parts of the time of the request, which follow on one another: what weir did before the
// first attempt, the attempts, the waits between them, and of a stream the time to its first token.
func (r *request) timing() table {
	t := table{columns: []column{{title: "TIMING"}, {title: "START", right: true}, {title: "DURATION", right: true}}}
	at, before := int64(0), "weir"
	until := func(name string, to int64, attempt bool) {
		next := min(max(to, at), max(0, r.LatencyMs))
		if attempt || next > at {
			t.texts(name, milliseconds(at), milliseconds(next-at))
		}
		at = next
	}
	for i := range r.Failed {
		f := &r.Failed[i]
		until(before, f.SentMs, false)
		until(r.account(f.ConnectionID, f.Provider)+": "+statusText(f.Status, f.Code), at+f.Ms, true)
		before = "wait before the next attempt"
	}
	if r.Attempts <= len(r.Failed) {
		until("weir, after the last attempt", r.LatencyMs, false)
		return t
	}
	account, answer := r.account(r.ConnectionID, r.Provider), ": answer"
	until(before, r.SentMs, false)
	if r.FirstMs > 0 {
		until(account+": first token", r.FirstMs, true)
		answer = ": rest of the stream"
	}
	until(account+answer, r.LatencyMs, r.FirstMs == 0)
	return t
}

// next returns the commands that help further, and what they do.
func (r *request) next() table {
	t := table{columns: make([]column, 2), wrap: true}
	add := func(does string, words ...string) {
		for _, f := range [...][2]string{{"--gateway", r.gateway}, {"--data", r.data}, {"--machine", r.machine}} {
			if f[1] != "" {
				words = append(words, f[:]...)
			}
		}
		line := "  weir"
		for _, w := range words {
			line += " " + ShellWord(w)
		}
		for _, row := range t.rows {
			if row[0].text == line {
				return
			}
		}
		t.texts(line, does)
	}
	key := r.known[r.KeyID] // "" of one that was revoked
	for i := range r.Failed {
		f := &r.Failed[i]
		switch account, doing := r.known[f.ConnectionID], failureText(f.Status, f.Code); {
		case account == "":
		case doing == requestWords.Failures["401"]:
			add("replaces the key", "accounts", "rotate", account)
		case doing == requestWords.Failures["404"]:
			add("lists its models", "accounts", "models", account)
		case f.Status >= 500:
			add("calls it once", "accounts", "test", account)
		}
	}
	switch {
	case r.Error == "no_credentials" && strings.Contains(r.Message, "weir accounts resume"): // which the message names
	case r.Reason == "model" && r.Error != "no_credentials":
		add("lists the models", "models")
	case r.Reason == "budget":
		add("shows what is spent", "budgets")
	case (r.Reason == "key" || r.Reason == "key_limit") && key != "":
		add("shows the limits of the key", "keys", "show", key)
	case r.Error == "no_credentials":
		add("connects an account", "accounts", "add", "PROVIDER")
	case r.Outcome == "no_account":
		add("shows until when they are left out", "models", "unavailable")
	}
	if r.Captured {
		add("prints the prompt and the answer", "captures", "show", r.ID)
	}
	if r.Asked != "" && strings.HasPrefix(r.Endpoint, "/v1/") && r.Reason != "model" {
		words := []string{"explain", r.Asked}
		if r.Endpoint != usualPath {
			words = append(words, "--path", r.Endpoint)
		}
		if key != "" {
			words = append(words, "--key", key)
		}
		add("shows the accounts in order", words...)
	}
	return t
}

// usualPath is the endpoint that goes without saying.
const usualPath = "/v1/chat/completions"

// showRequest shows a request: that of an id, or the latest that flags name.
func (a *app) showRequest(ctx context.Context, in *input) error {
	latest := len(in.args) == 0
	if latest {
		in.path = "/api/requests"
		in.set("?limit", 1)
		if err := errors.Join(in.find(ctx, "key", "?key"), in.find(ctx, "account", "?connection")); err != nil {
			return err
		}
	} else if len(in.values) > 0 {
		return Usagef("requests show: name an ID, or flags for the latest request that they name")
	}
	v, err := in.send(ctx)
	if err != nil {
		return err
	}
	if latest {
		if v = v.Get("data.0"); !v.Exists() {
			return errors.New("no such request is listed; weir requests lists all, weir requests -f waits for more")
		}
	}
	return a.show(v, func() error {
		if err := a.learnNames(ctx, in.client); err != nil {
			return err
		}
		return a.printRequest(v.Raw)
	})
}

// printRequest prints a request in words.
func (a *app) printRequest(raw string) error {
	r := &request{app: a}
	if err := json.Unmarshal([]byte(raw), &r.row); err != nil {
		return err
	}
	var b bytes.Buffer
	paragraph := func(text string) {
		lines := []string{clean(text)}
		if width := a.width(); width > 0 {
			lines = Lines(lines[0], width)
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	paragraph(r.what())
	if message := r.Message; message != "" && !r.left() {
		if r.Error != "" {
			message += " (" + r.Error + ")"
		}
		paragraph(pages.Replace(route.ReplaceAllStringFunc(message, commandOf)))
	}
	b.WriteByte('\n')
	b.Write(a.render(r.facts(), false))
	if attempts, said := r.attempts(); len(attempts.rows) > 0 {
		b.WriteByte('\n')
		b.Write(a.render(attempts, true))
		for _, one := range said {
			paragraph(one)
		}
		b.WriteByte('\n')
		b.Write(a.render(r.timing(), true))
	} else {
		b.WriteString("\nNot sent to a provider.\n")
	}
	if next := r.next(); len(next.rows) > 0 {
		b.WriteString("\nNext:\n")
		b.Write(a.render(next, false))
	}
	_, err := a.Stdout.Write(b.Bytes())
	return err
}
