package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/wire/apierr"
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
func statusText(status int64, code string) string {
	if code == unreachable {
		return "unreachable"
	}
	n := strconv.FormatInt(status, 10)
	return strings.TrimSpace(n + " " + requestWords.Statuses[n])
}

// failureText returns what an account did instead of answering: refused the key.
func failureText(status int64, code string) string {
	n := strconv.FormatInt(status, 10)
	other := "answered with status " + n
	if status >= 500 {
		other = "had an error"
	}
	return cmp.Or(requestWords.Failures[code], requestWords.Failures[n], other)
}

// request is a request as it is shown.
type request struct {
	gjson.Result
	*app
	failed []gjson.Result // attempts
}

func (r *request) is(field string) bool     { return r.Get(field).String() != "" }
func (r *request) text(field string) string { return clean(r.Get(field).String()) }
func (r *request) ms(field string) string   { return r.Get(field).String() + " ms" }

// left reports whether the client left before the end of the answer.
func (r *request) left() bool {
	return r.Get("status").Int() == apierr.StatusClientLeft || r.Get("error").String() == apierr.CodeClientLeft
}

// answered reports whether the account of the last attempt has answered, at least in part.
func (r *request) answered() bool {
	return r.Get("attempts").Int() > int64(len(r.failed)) && r.is("connectionId") && (r.left() || r.Get("status").Int() < 400)
}

// account returns the name of the account of a request or an attempt, without one that of its provider.
func (r *request) account(of gjson.Result) string {
	return clean(cmp.Or(r.known[of.Get("connectionId").String()], providerName(of.Get("provider").String())))
}

// what returns what became of the request, as a sentence.
func (r *request) what() string {
	var tried []string
	for _, f := range r.failed {
		tried = append(tried, r.account(f)+" "+failureText(f.Get("status").Int(), f.Get("code").String()))
	}
	served, code := r.account(r.Result), r.Get("error").String()
	switch outcome := r.Get("outcome").String(); {
	case r.left():
		return "The client disconnected before the end of the answer."
	case outcome == "refused":
		reason := spaced(cmp.Or(r.Get("reason").String(), r.Get("status").String()))
		if reason == "request" {
			reason = "invalid request"
		}
		return "Refused by weir: " + reason + "."
	case outcome == "no_account":
		return "No account could be tried."
	case r.Get("status").Int() >= 400 && len(tried) > 0:
		return "Failed: " + strings.Join(tried, ", then ") + "."
	case r.Get("status").Int() >= 400:
		return "Failed: " + statusText(r.Get("status").Int(), code) + "."
	case code != "":
		return "Interrupted: " + served + " " + failureText(r.Get("status").Int(), code) + "."
	case len(tried) > 0:
		return "Answered by " + served + ", after " + strings.Join(tried, " and ") + "."
	}
	return "Answered by " + served + "."
}

// facts returns what is known of the request, a line each.
func (r *request) facts() table {
	t := table{columns: []column{{}, {}}, wrap: true}
	add := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			t.add(plain(name), plain(text))
		}
	}
	about := ""
	if r.Get("estimated").Bool() {
		about = "≈ "
	}
	tokens := func(name, field, part, of string) {
		if v := r.Get(field); v.Exists() {
			text := about + v.String()
			if n := r.Get(part).Int(); n > 0 {
				text += fmt.Sprintf(", %d of them %s", n, of)
			}
			add(name, "%s", text)
		}
	}
	add("Request", "%s", r.text("id"))
	add("Time", "%s %s", when(r.app, r.Get("at")).text[:len("2006-01-02")], clock(r.app, r.Get("at")).text)
	status := r.text("status")
	if r.Get("attempts").Int() > 0 {
		status = statusText(r.Get("status").Int(), r.Get("error").String())
	}
	if r.is("error") && !r.is("message") {
		status += " (" + r.text("error") + ")"
	}
	add("Status", "%s", status)
	add("Endpoint", "%s", r.text("endpoint"))
	add("Key", "%s", named(r.app, r.Get("keyId")).text)
	add("Tool", "%s", r.text("tool"))
	add("Tags", "%s", strings.ReplaceAll(text(r.app, r.Get("tags")).text, ",", ", "))
	models := slices.Compact([]string{cmp.Or(r.text("asked"), r.text("model")), cmp.Or(r.text("model"), r.text("asked"))})
	add("Model", "%s", strings.Join(models, " → "))
	if r.answered() {
		add("Account", "%s", r.account(r.Result))
		add("Provider", "%s", providerName(r.Get("provider").String()))
	}
	latency := r.ms("latencyMs")
	if r.is("firstMs") {
		latency += ", first token after " + r.ms("firstMs")
	}
	add("Latency", "%s", latency)
	tokens("Input", "inputTokens", "cacheReadTokens", "cached")
	tokens("Output", "outputTokens", "reasoningTokens", "reasoning")
	add("Cost", "%s", r.cost(about))
	var unsent, set []string
	for _, d := range r.Get("dropped").Array() {
		if strings.Contains(d.String(), "=") {
			set = append(set, d.String())
		} else {
			unsent = append(unsent, d.String())
		}
	}
	add("Not sent", "%s", strings.Join(unsent, ", "))
	add("Set by weir", "%s", strings.Join(set, ", "))
	if trace := strings.Split(r.text("traceparent"), "-"); len(trace) > 1 {
		add("Trace", "%s", trace[1])
	}
	return t
}

// cost returns the cost in words, or what keeps it unknown.
func (r *request) cost(about string) string {
	amount := requestCost(r.app, r.Result).text
	switch parts := text(r.app, r.Get("unpricedParts")).text; {
	case r.Get("priced").Bool():
		return about + amount
	case parts != "":
		return amount + ", no price for " + strings.ReplaceAll(strings.ReplaceAll(parts, "_", " "), ",", ", ")
	case amount != "":
		return amount + ", no price is known"
	}
	return ""
}

// attempts returns the attempts, a line each, and what providers said.
func (r *request) attempts() (t table, said []string) {
	t.columns = []column{{title: "TRY", right: true}, {title: "ACCOUNT"}, {title: "PROVIDER"}, {title: "MODEL"}, {title: "RESULT"},
		{title: "DURATION", right: true}}
	add := func(of gjson.Result, result cell, ms int64) {
		t.add(plain(strconv.Itoa(len(t.rows)+1)), plain(r.account(of)), plain(providerName(of.Get("provider").String())),
			plain(of.Get("model").String()), result, plain(fmt.Sprintf("%d ms", ms)))
	}
	for _, f := range r.failed {
		code := f.Get("code").String()
		add(f, cell{statusText(f.Get("status").Int(), code), red}, f.Get("ms").Int())
		if text := clean(f.Get("text").String()); text != "" {
			if code != "" {
				text += " (" + clean(code) + ")"
			}
			said = append(said, r.account(f)+": "+text)
		}
	}
	if r.Get("attempts").Int() > int64(len(r.failed)) && r.is("connectionId") {
		result := cell{"answered", green}
		if r.is("error") || !r.answered() {
			result = cell{"interrupted", yellow}
		}
		add(r.Result, result, max(0, r.Get("latencyMs").Int()-r.Get("sentMs").Int()))
	}
	return t, said
}

// timing returns the parts of the time of the request, which follow on one another: what weir did before the
// first attempt, the attempts, the waits between them, and of a stream the time to its first token.
func (r *request) timing() table {
	t := table{columns: []column{{title: "TIMING"}, {title: "START", right: true}, {title: "DURATION", right: true}}}
	at, end := int64(0), max(0, r.Get("latencyMs").Int())
	until := func(name string, to int64, attempt bool) {
		next := min(max(to, at), end)
		if attempt || next > at {
			t.add(plain(name), plain(fmt.Sprintf("%d ms", at)), plain(fmt.Sprintf("%d ms", next-at)))
		}
		at = next
	}
	before := "weir"
	for _, f := range r.failed {
		until(before, f.Get("sentMs").Int(), false)
		until(r.account(f)+": "+statusText(f.Get("status").Int(), f.Get("code").String()), at+f.Get("ms").Int(), true)
		before = "wait before the next attempt"
	}
	account := r.account(r.Result)
	switch {
	case r.Get("attempts").Int() <= int64(len(r.failed)):
		until("weir, after the last attempt", end, false)
	case r.is("firstMs"):
		until(before, r.Get("sentMs").Int(), false)
		until(account+": first token", r.Get("firstMs").Int(), true)
		until(account+": rest of the stream", end, false)
	default:
		until(before, r.Get("sentMs").Int(), false)
		until(account+": answer", end, true)
	}
	return t
}

// next returns the commands that help further, and what they do.
func (r *request) next() table {
	t := table{columns: []column{{}, {}}, wrap: true}
	add := func(does string, words ...string) {
		line := "weir"
		for _, w := range words {
			line += " " + ShellWord(w)
		}
		for _, f := range [...][2]string{{"--gateway", r.gateway}, {"--data", r.data}, {"--machine", r.machine}} {
			if f[1] != "" {
				line += " " + f[0] + " " + ShellWord(f[1])
			}
		}
		if !slices.ContainsFunc(t.rows, func(row []cell) bool { return row[0].text == "  "+clean(line) }) {
			t.add(plain("  "+line), plain(does))
		}
	}
	key := clean(r.known[r.Get("keyId").String()]) // "" of one that was revoked
	for _, f := range r.failed {
		account := r.known[f.Get("connectionId").String()]
		switch doing := failureText(f.Get("status").Int(), f.Get("code").String()); {
		case account == "":
		case doing == requestWords.Failures["401"]:
			add("replaces the key", "accounts", "rotate", account)
		case doing == requestWords.Failures["404"]:
			add("lists its models", "accounts", "models", account)
		case f.Get("status").Int() >= 500:
			add("calls it once", "accounts", "test", account)
		}
	}
	switch r.Get("reason").String() {
	case "key", "key_limit":
		if key != "" {
			add("shows the limits of the key", "keys", "show", key)
		}
	case "budget":
		add("shows what is spent", "budgets")
	case "model":
		add("lists the models", "models")
	}
	if r.Get("error").String() == "no_credentials" {
		add("connects an account", "accounts", "add", "PROVIDER")
	} else if r.Get("outcome").String() == "no_account" {
		add("shows what keeps them", "accounts")
	}
	if r.Get("captured").Bool() {
		add("prints the prompt and the answer", "captures", "show", r.text("id"))
	}
	if asked := r.text("asked"); asked != "" && strings.HasPrefix(r.text("endpoint"), "/v1/") && r.Get("reason").String() != "model" {
		words := []string{"explain", asked}
		if r.text("endpoint") != usualPath {
			words = append(words, "--path", r.text("endpoint"))
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
	var v gjson.Result
	var err error
	if len(in.args) == 1 {
		if len(in.values) > 0 {
			return Usagef("requests show: name an ID, or flags for the latest request that they name")
		}
		v, err = in.send(ctx)
	} else {
		in.path = "/api/requests"
		if err := errors.Join(in.find(ctx, "key", "?key"), in.find(ctx, "account", "?connection")); err != nil {
			return err
		}
		in.set("?limit", 1)
		if v, err = in.send(ctx); err == nil {
			if v = v.Get("data.0"); !v.Exists() {
				return errors.New("no such request is listed; weir requests lists all, weir requests -f waits for more")
			}
		}
	}
	if err != nil {
		return err
	}
	return a.show(v, func() error {
		if err := a.learnNames(ctx, in.client); err != nil {
			return err
		}
		return a.printRequest(&request{v, a, v.Get("failed").Array()})
	})
}

// printRequest prints a request in words.
func (a *app) printRequest(r *request) error {
	var b bytes.Buffer
	paragraph := func(text string) {
		lines := []string{text}
		if width := a.width(); width > 0 {
			lines = Lines(text, width)
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	paragraph(r.what())
	if message := r.text("message"); message != "" && !r.left() {
		if code := r.text("error"); code != "" {
			message += " (" + code + ")"
		}
		paragraph(route.ReplaceAllStringFunc(message, commandOf))
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
