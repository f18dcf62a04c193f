package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"weir/internal/golden"
	"weir/server/cli"
)

func TestSchemaIsCurrent(t *testing.T) {
	golden.Bytes(t, "../../../docs/reference/weir.schema.json", cli.Schema())
}

// random makes values of documents.
type random struct{ *rand.Rand }

func (r random) some(p float64) bool { return r.Float64() < p }

func pick[T any](r random, list ...T) T { return list[r.IntN(len(list))] }

// maybe returns a pointer to a value, or nil.
func maybe[T any](r random, v T) *T {
	if r.some(0.5) {
		return nil
	}
	return &v
}

// subset returns some of a list, in random order.
func (r random) subset(list ...string) (out []string) {
	for _, i := range r.Perm(len(list))[:r.IntN(len(list)+1)] {
		out = append(out, list[i])
	}
	return out
}

func (r random) template() *cli.FileTemplate {
	if r.some(0.3) {
		return nil
	}
	return &cli.FileTemplate{Keys: maybe(r, r.IntN(3)), Models: r.subset("a/echo", "b/*"), RPM: maybe(r, r.IntN(3)), Days: maybe(r, r.IntN(3)),
		BudgetUSD: maybe(r, float64(r.IntN(3))/2), BudgetWindow: maybe(r, pick(r, "day", "month"))}
}

// document returns a random file over the accounts that it has. Every n is another world.
func (r random) document(n int, upstream, issuer string, people []string) cli.File {
	f := cli.File{Disabled: map[string][]string{}, Aliases: map[string]string{}}
	name := func(kind string, i int) string { return fmt.Sprintf("%s %d-%d ä\"'#: x", kind, n%3, i) }
	models := []string{"a/echo", "b/echo", "c/*", "openai/gpt-6-sol"}
	for i, prefix := range r.subset("a", "b", "c") {
		a := cli.FileAccount{Name: name("account", i), Provider: "openai-compatible", Priority: maybe(r, r.IntN(9)+1), Weight: maybe(r, r.IntN(9)+1),
			IsActive: maybe(r, r.some(0.5)), APIKey: &cli.Reference{Env: "API_KEY"},
			Options: map[string]any{"baseUrl": upstream + pick(r, "/v1", "/v1/"), "prefix": prefix + fmt.Sprint(n%3)}}
		if r.some(0.5) {
			a.Options["enabledModels"] = r.subset("echo", "other", "third")
			a.Options["streamUsage"] = r.some(0.5)
		}
		f.Accounts = append(f.Accounts, a)
		f.Models = append(f.Models, cli.FileModel{ProviderAlias: prefix + fmt.Sprint(n%3), ID: "own", Type: maybe(r, "embedding"), Name: maybe(r, "Own"), ContextLength: maybe(r, r.IntN(1000)+1)})
		f.Disabled[prefix+fmt.Sprint(n%3)] = r.subset("x", "y", "z")
	}
	for i := range r.IntN(3) {
		c := cli.FileCombo{Name: fmt.Sprintf("combo-%d-%d", n%3, i), Models: models[:1+r.IntN(2)], Strategy: maybe(r, pick(r, "round-robin", "weighted", "cheapest", "fallback"))}
		if c.Strategy != nil && *c.Strategy == "weighted" {
			c.Weights = map[string]int{"a/echo": r.IntN(9) + 1}
		}
		if r.some(0.3) {
			c.On = map[string]string{"limit": pick(r, "next", "stop")}
		}
		f.Combos = append(f.Combos, c)
		f.Aliases[fmt.Sprintf("alias-%d", i)] = pick(r, "a/echo", "b/echo")
	}
	for i := range r.IntN(4) {
		f.Keys = append(f.Keys, cli.FileKey{Name: name("key", i), Scopes: pick(r, nil, []string{"data"}, []string{"data", "manage"}), Models: r.subset(models...), Tags: r.subset("team=web", "nightly"),
			RPM: maybe(r, r.IntN(100)+1), DailyMax: maybe(r, r.IntN(100)+1), TPM: maybe(r, r.IntN(1000)+1), MaxParallel: maybe(r, r.IntN(9)+1),
			ExpiresAt: maybe(r, pick(r, "2099-12-31", "2098-01-02T03:04:05Z")), Paused: maybe(r, r.some(0.5)), CapturePercent: maybe(r, r.IntN(3)*50)})
		f.Budgets = append(f.Budgets, cli.FileBudget{Name: fmt.Sprintf("budget %d %d", n, i), Key: maybe(r, name("key", i)), Limit: float64(r.IntN(1000)+1) / 4,
			Unit: "usd", Window: pick(r, "minute", "5h", "day", "week", "month", "total"), Models: r.subset(models[:2]...), Tag: maybe(r, "team=web"), Unpriced: maybe(r, pick(r, "pass", "refuse"))})
	}
	for i := range r.IntN(3) {
		d := cli.FileDestination{Name: name("destination", i), Kind: "webhook", Enabled: maybe(r, r.some(0.5)), Settings: map[string]any{"url": cli.Reference{Env: "HOOK"}}}
		if r.some(0.5) {
			d.Events = append(r.subset("budget.reached"), "account.refused")
		}
		f.Destinations = append(f.Destinations, d)
	}
	for i := range r.IntN(3) {
		idp := cli.FileIdentityProvider{Name: name("provider", i), Issuer: issuer, ClientID: pick(r, "weir", "other")}
		if r.some(0.5) {
			idp.ClientSecret, idp.Scopes = &cli.Reference{Env: "API_KEY"}, pick(r, nil, []string{"email"}, []string{"email", "groups"})
		}
		for range r.IntN(3) {
			rule := cli.FileRule{Claim: pick(r, []string{"groups"}, []string{"realm_access", "roles"}), Value: pick(r, "a", "b"), Role: "member", Machines: pick(r, []string{"*"}, []string{"main"}, []string{"main", "0123456789abcdef"})}
			if rule.Template = r.template(); r.some(0.5) {
				rule.Role, rule.Template = pick(r, "viewer", "editor", "owner"), nil
			}
			idp.Rules = append(idp.Rules, rule)
		}
		f.IdentityProviders = append(f.IdentityProviders, idp)
	}
	for _, id := range r.subset(people...) {
		p := cli.FilePerson{ID: id, Role: "member", Template: r.template()}
		if r.some(0.5) {
			p.Role, p.Template = pick(r, "viewer", "editor", "owner"), nil
		}
		f.People = append(f.People, p)
	}
	if r.some(0.7) {
		f.Settings = &cli.FileSettings{Strategy: maybe(r, pick(r, "priority", "round-robin", "fallback")), IdleSeconds: maybe(r, r.IntN(100)+10), FirstByteSeconds: maybe(r, r.IntN(100)+10), PromptCaching: maybe(r, pick(r, "on", "auto", "off")),
			TimeZone: maybe(r, pick(r, "UTC", "Europe/Berlin")), DefaultModel: maybe(r, "a/echo"), CapturePercent: maybe(r, r.IntN(101)), MaxParallel: maybe(r, r.IntN(9)), StreamCost: maybe(r, pick(r, "on", "off")), PublicStatus: maybe(r, pick(r, "off", "models")), TraceUpstream: r.subset("a.example.com", "b.example.com")}
		if r.some(0.5) {
			price := pick(r, "1/2", "0.5/1.5")
			f.Settings.ModelPrices = map[string]*string{"a0/echo": &price}
		}
	}
	return f
}

// After apply there is nothing to plan, whatever the machine had before and the file has. The
// files fit the schema.
func TestPlanIsEmptyAfterApply(t *testing.T) {
	w := newWorld(t)
	schema := compiled(t)
	var people []string
	for _, name := range []string{"Ada", "Ben", "Cem"} {
		people = append(people, w.joins(name))
	}
	for seed := range uint64(40) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		raw, err := json.Marshal(r.document(int(seed), w.upstream.URL, w.issuer(), people)) // JSON is YAML
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if json.Unmarshal(raw, &doc) != nil || schema.Validate(doc) != nil {
			t.Fatalf("seed %d: %v, %v\n%s", seed, err, schema.Validate(doc), raw)
		}
		apply := []string{"apply", "-", "--yes"}
		plan := []string{"plan", "-"}
		if seed%2 == 1 {
			apply, plan = append(apply, "--prune"), append(plan, "--prune")
		}
		before, planned, failed := w.run(string(raw), plan...)
		if before == 1 {
			t.Fatalf("seed %d: plan: %s\n%s", seed, failed, raw)
		}
		if code, out, failed := w.run(string(raw), apply...); code != 0 || !strings.HasPrefix(failed, planned) {
			t.Fatalf("seed %d: apply: exit %d, %s%s\n%s", seed, code, out, failed, raw)
		}
		if code, out, failed := w.run(string(raw), plan...); code != 0 {
			t.Fatalf("seed %d: plan after apply: exit %d, %s%s\n%s", seed, code, out, failed, raw)
		}
		for i, id := range people {
			if listed := strings.Contains(string(raw), id); !listed && seed%2 == 1 && bytes.Contains(raw, []byte(`"people"`)) {
				people[i] = w.joins("Another") // who was removed comes back as someone else
			}
		}
		// The file of the machine is a description of it too.
		code, pulled, failed := w.run("", "pull")
		if code != 0 {
			t.Fatalf("seed %d: pull: %s", seed, failed)
		}
		env := w.env()
		anyVariable := func(name string) (string, bool) {
			if strings.HasPrefix(name, "DESTINATION_") {
				return w.upstream.URL + "/hook", true
			}
			if strings.HasSuffix(name, "_APIKEY") || strings.HasSuffix(name, "_CLIENTSECRET") {
				return "sk-upstream-0123456789", true
			}
			return env(name)
		}
		if code, out, failed := w.runIn(anyVariable, pulled, "plan", "-", "--prune"); code != 0 {
			t.Fatalf("seed %d: plan after pull: exit %d, %s%s\n%s", seed, code, out, failed, pulled)
		}
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(cli.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AddResource("weir.json", doc)
	s, err := c.Compile("weir.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMistakesOfTheFileAreNamed(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ text, want string }{
		{"keys:\n  - name: a\n    rmp: 5\n", "line 3, column 5: unknown field \"rmp\"; did you mean rpm?"},
		{"colour: red\n", "line 1, column 1: unknown field \"colour\"; the fields here are accounts, aliases, budgets, "},
		{"keys:\n  - name: a\n    rpm: many\n", "line 3, column 10: an integer"},
		{"accounts:\n  - name: a\n    provider: openai\n    apiKey: sk-literal\n", "line 4, column 13: a secret is expected"},
		{"accounts:\n  - name: a\n    provider: openai\n    apiKey: {env: A, file: b}\n", "write one of"},
		{"accounts:\n  - name: a\n    provider: openai\n    apiKey: {env: MISSING}\n", "line 4, column 19: apiKey: the variable MISSING is not set"},
		{"accounts:\n  - {name: a, provider: openai, apiKey: {env: FIRST}}\n  - {name: b, provider: openai, apiKey: {env: API_KEY}, options: {env: x, projectId: {env: SECOND}}}\n" +
			"destinations: [{name: c, kind: webhook, settings: {url: {env: THIRD}}}]\naliases: {env: a/b}\n",
			"line 2, column 47: apiKey: the variable FIRST is not set; line 3, column 92: projectId: the variable SECOND is not set; line 4, column 63: url: the variable THIRD is not set\n"},
		{"accounts:\n  - name: a\n    provider: openai\n    apiKey: {file: /missing}\n", "/missing"},
		{"accounts:\n  - name: a\n    provider: openai\n    apiKey: {command: exit 3}\n", "exit status 3"},
		{"keys:\n  - name: a\n  - name: a\n", "line 3, column 5: keys: the name \"a\" is empty or used twice"},
		{"keys:\n  - rpm: 5\n", "is empty or used twice"},
		{"keys:\n  - name: a\n    rpm: 1\n    rpm: 2\n", "line 4, column 5"},
		{"keys:\n  - name: a\n    expiresAt: soon\n", "expiresAt soon"},
		{"budgets:\n  - {name: a, limit: 1, unit: usd, window: day, key: nowhere}\n", `no key "nowhere"`},
		{"keys: [\n", "line "},
		{"- a\n", "line 1, column 1: a mapping"},
		{"keys:\n  - name: 5\n", "line 2, column 11: a text"},
		{"keys: []\n---\nkeys: []\n", "a second document"},
		{"disabled: &a {x: *a}\n", "line 1"},
		{"machine: nowhere\nkeys: []\n", "nowhere"},
		{"identityProviders:\n  - {name: a, issuer: b, clientId: c, rules: [{claim: [a], vale: b}]}\n", "line 2, column 60: unknown field \"vale\"; did you mean value?"},
		{"identityProviders:\n  - {name: a, issuer: b, clientId: c, clientSecret: d}\n", "line 2, column 53: a secret is expected"},
		{"identityProviders:\n  - {name: a, issuer: b, clientId: c, rules: [{claim: [a], value: b, role: viewer, machines: [nowhere]}]}\n", `no machine has the name or id "nowhere"`},
		{"people:\n  - {id: p_0, role: viewer}\n  - {id: p_0, role: owner}\n", "line 3, column 5: people: the name \"p_0\" is empty or used twice"},
	} {
		code, out, failed := w.run(tt.text, "plan", "-")
		if code != 1 || !strings.Contains(failed, tt.want) || strings.Count(failed, "\n") != 1 {
			t.Errorf("%q: exit %d, want %q in %q %s", tt.text, code, tt.want, failed, out)
		}
	}
	if code, _, failed := w.run("", "plan"); code != 1 || !strings.Contains(failed, "there is no weir.yaml in this folder; weir pull weir.yaml writes one") {
		t.Errorf("without a file: exit %d, %s", code, failed)
	}
	if code, out, failed := w.run("sk-named", "accounts", "add", "openai", "--name", "named", "--no-test"); code != 0 {
		t.Fatal(out, failed)
	}
	if code, _, failed := w.run("accounts: [{name: named, provider: opnai}]\n", "plan", "-"); code != 1 || !strings.Contains(failed, "its provider is openai and cannot become opnai") {
		t.Errorf("another provider: exit %d, %s", code, failed)
	}
	if code, out, failed := w.run("", "api", "POST", "/api/keys"); code != 0 {
		t.Fatal(out, failed)
	}
	if code, out, failed := w.run("", "pull"); code != 0 || !strings.Contains(out, "name: API key\n") || strings.Contains(failed, "cannot read") {
		t.Errorf("a key that was given no name: exit %d, %s%s", code, out, failed)
	}
}

// weir plan knows the rows by name, so those that were given none have one.
func TestPulledFileOfUnnamedAccountsHasNothingToPlan(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if code, out, failed := w.run("sk-unnamed-0123456789", "accounts", "add", "openai", "--no-test"); code != 0 {
			t.Fatal(out, failed)
		}
	}
	w.ok("accounts", "add", "openai-compatible", "--base-url", w.upstream.URL+"/v1", "--prefix", "local")
	w.ok("call", "local/echo", "Hello") // whose key is that of weir call
	pulled := w.ok("pull")
	env := w.env("OPENAI_APIKEY", "sk-unnamed-0123456789", "OPENAI_2_APIKEY", "sk-unnamed-0123456789")
	if code, out, failed := w.runIn(env, pulled, "plan", "-", "--prune"); code != 0 || strings.Contains(pulled, "weir call") {
		t.Errorf("exit %d, %s%s\n%s", code, out, failed, pulled)
	}
}

// null is the default of each setting, also of those that the API always shows.
func TestNullSettingsAreEqualToDefaults(t *testing.T) {
	w := newWorld(t)
	text := "settings:\n"
	for f := range reflect.TypeFor[cli.FileSettings]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		text += "  " + name + ": null\n"
	}
	if code, _, failed := w.run(text, "apply", "-", "--yes"); code != 0 {
		t.Fatalf("exit %d, %s", code, failed)
	}
	if code, out, failed := w.run(text, "plan", "-"); code != 0 {
		t.Errorf("exit %d, %s%s", code, out, failed)
	}
}

// A cycle of combos within the file is an error with its line. One through a combo of the
// machine is refused by the gateway, and what was applied before stays.
func TestCycleOfCombosIsRefused(t *testing.T) {
	w := newWorld(t)
	const text = "combos:\n  - {name: zero, models: [one]}\n  - {name: one, models: [two]}\n  - {name: two, models: [a/b, one]}\n"
	for _, command := range []string{"plan", "apply"} {
		code, _, failed := w.run(text, command, "-")
		if code != 1 || !strings.Contains(failed, "line 3, column 5: combos: one leads back to itself") {
			t.Errorf("%s: exit %d, %s", command, code, failed)
		}
	}
	if code, _, failed := w.run("combos:\n  - {name: one, models: [two]}\n", "apply", "-", "--yes"); code != 0 {
		t.Fatal(failed)
	}
	code, _, failed := w.run("combos:\n  - {name: three, models: [one]}\n  - {name: two, models: [one]}\n", "apply", "-", "--yes")
	if code != 1 || !strings.Contains(failed, "1 of 2 steps are done") {
		t.Errorf("exit %d, %s", code, failed)
	}
}

// A plan shows what a value becomes, but no address of a webhook, which may have a secret.
func TestPlanShowsValues(t *testing.T) {
	w := newWorld(t)
	w.ok("budgets", "add", "ci", "20/month", "--webhook-url", "https://hooks.example.com/one")
	w.ok("models", "alias", "small", "openai/gpt-6-sol")
	const text = "aliases: {small: openai/gpt-4o}\nbudgets:\n  - {name: ci, limit: 30, models: ['openai/*'], " +
		"webhookUrl: 'https://hooks.example.com/two', unit: usd, window: month}\nsettings: {idleSeconds: 60}\n"
	code, out, failed := w.run(text, "plan", "-")
	for _, want := range []string{"  limit 20 → 30, models, webhookUrl\n", "  model openai/gpt-6-sol → openai/gpt-4o\n", "  idleSeconds 300 → 60\n"} {
		if code != 2 || !strings.Contains(out, want) {
			t.Errorf("exit %d, want %q in %s%s", code, want, out, failed)
		}
	}
}

// A server of one's own that is renamed in the file takes the place, and the prefix, of the one before.
func TestRenamedAccountKeepsItsPrefix(t *testing.T) {
	w := newWorld(t)
	text := func(name string) string {
		return "accounts: [{name: " + name + ", provider: openai-compatible, options: {baseUrl: " + w.upstream.URL + "/v1, prefix: local}}]\n"
	}
	for _, name := range []string{"before", "after"} {
		if code, out, failed := w.run(text(name), "apply", "-", "--yes", "--prune"); code != 0 {
			t.Fatalf("%s: exit %d, %s%s", name, code, out, failed)
		}
	}
	if out := w.ok("accounts"); !strings.Contains(out, "after") || strings.Contains(out, "before") {
		t.Errorf("got %s", out)
	}
	if code, _, failed := w.run(text("third"), "apply", "-", "--yes"); code != 1 || !strings.Contains(failed, `those of the account "after"`) {
		t.Errorf("without --prune: exit %d, %s", code, failed)
	}
}

// The file owns the sections that it has, and without --prune nothing is deleted.
func TestPruneDeletesOnlyWhatTheFileOwns(t *testing.T) {
	w := newWorld(t)
	_, manager, _ := w.run("", "keys", "add", "manager", "--scopes", "manage,data")
	w.run("", "keys", "add", "other")
	w.run("", "models", "alias", "small", "openai/gpt-6-sol")
	w.run("", "budgets", "add", "all", "100/month")
	const text = "aliases: {}\nkeys:\n  - {name: laptop, rpm: 5}\n"
	code, out, failed := w.run(text, "apply", "-", "--yes")
	if code != 0 || !strings.Contains(failed, "to delete: 0") {
		t.Fatalf("exit %d, %s%s", code, out, failed)
	}
	if !strings.HasPrefix(out, "sk-") || strings.Count(out, "\n") != 1 { // weir apply --yes > laptop.key
		t.Errorf("the key alone is printed: %q", out)
	}
	env := w.env("WEIR_GATEWAY", w.url, "WEIR_TOKEN", strings.TrimSpace(manager))
	if code, out, failed := w.runIn(env, text, "apply", "-", "--yes", "--prune"); code != 0 {
		t.Fatalf("exit %d, %s%s", code, out, failed)
	}
	for _, tt := range []struct {
		args, want, not string
	}{{"keys", "laptop", "other"}, {"keys", "manager", "Default key"}, {"models aliases", "", "small"}, {"budgets", "all", "-"}} {
		_, out, _ := w.run("", strings.Fields(tt.args)...)
		if !strings.Contains(out, tt.want) || strings.Contains(out, tt.not) {
			t.Errorf("weir %s: %s", tt.args, out)
		}
	}
}

// A secret that changed is found, also by one character within it, and --secrets sends all of
// them again.
func TestChangedSecretsAreSent(t *testing.T) {
	w := newWorld(t)
	const text = "accounts:\n  - {name: main, provider: openai, apiKey: {env: API_KEY}}\n"
	if code, _, failed := w.run(text, "apply", "-", "--yes"); code != 0 {
		t.Fatal(failed)
	}
	all := text + "  - {name: aws, provider: bedrock, options: {region: eu-west-1}, accessKeyId: {env: AWS_ID}, secretAccessKey: {env: AWS_SECRET}}\n" +
		"destinations:\n  - {name: bell, kind: webhook, settings: {url: {env: HOOK}}}\n"
	stored := []string{"AWS_ID", "AKIA0123456789ABCDEF", "AWS_SECRET", "secret-0123456789-0123456789"}
	if code, _, failed := w.runIn(w.env(stored...), all, "apply", "-", "--yes"); code != 0 {
		t.Fatal(failed)
	}
	for _, tt := range []struct{ name, value, want string }{
		{"API_KEY", "sk-upstream-0123456788", "apiKey"}, {"API_KEY", "sk-Upstream-0123456789", "apiKey"},
		{"AWS_SECRET", "secret-0123456780-0123456789", "secretAccessKey"}, {"AWS_SECRET", "x", "secretAccessKey"},
		{"HOOK", w.upstream.URL + "/hook?other", "settings"},
		{"UNUSED", "x", ""},
	} {
		code, out, failed := w.runIn(w.env(append(stored, tt.name, tt.value)...), all, "plan", "-")
		if want := 2; tt.want == "" && code != 0 || tt.want != "" && (code != want || !strings.Contains(out, "to change: 1")) ||
			!strings.Contains(out, tt.want) || strings.Contains(out, tt.value) && tt.want != "" && len(tt.value) > 1 {
			t.Errorf("%s=%s: exit %d, %s%s", tt.name, tt.value, code, out, failed)
		}
	}
	code, out, _ := w.runIn(w.env("API_KEY", "sk-another-9876543210"), text, "plan", "-")
	if code != 2 || !strings.Contains(out, "apiKey") || strings.Contains(out, "another") {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out, _ := w.run(text, "plan", "-", "--secrets"); code != 2 || !strings.Contains(out, "apiKey") {
		t.Errorf("--secrets: exit %d, %s", code, out)
	}
	if code, out, _ := w.run(strings.Replace(text, "{env: API_KEY}", "{command: printf sk-upstream-0123456789}", 1), "plan", "-"); code != 0 {
		t.Errorf("a command: exit %d, %s", code, out)
	}
}

// The file sets the identity providers of the gateway and the roles of people. A secret is compared and not
// read back, and prune removes no one who has a role by a rule.
func TestFileSetsWhoMaySignIn(t *testing.T) {
	w := newWorld(t)
	_, manager, _ := w.run("", "keys", "add", "manager", "--scopes", "manage,data")
	ada, ben := w.joins("Ada"), w.joins("Ben")
	text := "identityProviders:\n  - name: Acme\n    issuer: " + w.issuer() + "\n    clientId: weir\n    clientSecret: {env: API_KEY}\n" +
		"    rules:\n      - {claim: [groups], value: ai, role: editor, machines: [main]}\npeople:\n  - {id: " + ada + ", role: viewer}\n"
	if code, _, failed := w.run(text, "apply", "-", "--yes"); code != 0 {
		t.Fatal(failed)
	}
	_, list, _ := w.run("", "identity-providers", "--json")
	if got := gjson.Get(list, "data.0"); !got.Get("hasSecret").Bool() || len(got.Get("rules.0.machines.0").Str) != 16 {
		t.Fatal(list)
	}
	for _, tt := range []struct{ old, now, secret, want string }{
		{"weir", "weir", "sk-upstream-0123456789", ""}, {"weir", "weir", "sk-another-9876543210", "clientSecret"},
		{"clientId: weir", "clientId: other", "sk-upstream-0123456789", "clientId weir → other, clientSecret"},
		{"role: viewer}", "role: member, template: {keys: 2}}", "sk-upstream-0123456789", "role viewer → member, template"},
		{"    clientSecret: {env: API_KEY}\n", "    clientSecret: null\n", "", ""},
	} {
		changed := strings.Replace(text, tt.old, tt.now, 1)
		code, out, failed := w.runIn(w.env("API_KEY", tt.secret), changed, "plan", "-")
		if tt.want == "" && code != 0 || tt.want != "" && (code != 2 || !strings.Contains(out, tt.want+"\n")) || strings.Contains(out, "sk-") {
			t.Errorf("%s: exit %d, %s%s", tt.now, code, out, failed)
		}
	}
	// A key that manages the machine is not the operator's, who alone may compare these secrets.
	env := w.env("WEIR_GATEWAY", w.url, "WEIR_TOKEN", strings.TrimSpace(manager))
	if code, _, failed := w.runIn(env, text, "plan", "-"); code != 1 || !strings.Contains(failed, "the operator token is needed") {
		t.Errorf("with a key: exit %d, %s", code, failed)
	}
	code, _, failed := w.runIn(env, `{"identityProviders":{"`+gjson.Get(list, "data.0.id").Str+`":{"clientSecret":"x"}}}`, "api", "POST", "/api/compare", "--body", "-")
	if code != 1 || !strings.Contains(failed, "role_required") {
		t.Errorf("a comparison with a key: exit %d, %s", code, failed)
	}
	if code, out, failed := w.runIn(env, "", "pull"); code != 0 || strings.Contains(out, "identityProviders") || !strings.Contains(out, ben) {
		t.Errorf("pull with a key: exit %d, %s%s", code, out, failed)
	}
	// Who is not there is named, and a file without someone removes them with --prune alone.
	lost := strings.ReplaceAll(text, ada, "p_00000000000000000000000000000000")
	if code, _, failed := w.run(lost, "plan", "-"); code != 0 || !strings.Contains(failed, "no person of the machine has the id p_0") {
		t.Errorf("an unknown person: exit %d, %s", code, failed)
	}
	if code, out, failed := w.run(text, "apply", "-", "--yes", "--prune"); code != 0 || !strings.Contains(failed, "Ben") {
		t.Errorf("prune: exit %d, %s%s", code, out, failed)
	}
	if _, out, _ := w.run("", "people", "--json"); strings.Contains(out, ben) || gjson.Get(out, "data.0.role").Str != "viewer" {
		t.Errorf("people: %s", out)
	}
	if code, out, failed := w.run("identityProviders: []\n", "apply", "-", "--yes", "--prune"); code != 0 || !strings.Contains(failed, "to delete: 1") {
		t.Errorf("prune providers: exit %d, %s%s", code, out, failed)
	}
}

// Of two applies at once, one may find that the machine has changed. Nothing is created twice.
func TestAppliesAtOnceDoNotCreateTwice(t *testing.T) {
	w := newWorld(t)
	var text strings.Builder
	text.WriteString("keys:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "  - {name: key %d}\n", i)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if code, _, failed := w.remote(text.String(), "apply", "-", "--yes"); code != 0 && !strings.Contains(failed, "run weir plan again") {
				t.Errorf("exit %d, %s", code, failed)
			}
		})
	}
	group.Wait()
	if code, _, failed := w.run(text.String(), "apply", "-", "--yes"); code != 0 {
		t.Fatal(failed)
	}
	_, out, _ := w.run("", "keys", "--json")
	if n := strings.Count(out, `"name":"key `); n != 20 {
		t.Errorf("%d keys", n)
	}
}

// The file has every field that the API can store.
func TestFileHasTheFieldsOfTheAPI(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct {
			Properties map[string]any
			Items      struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(cli.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	// Fields with another name in the file, or that are not stored.
	elsewhere := []string{"allowUnknown", "budget", "providerSpecificData", "keyId", "expiresAt"}
	for input, section := range map[string]string{"ConnectionInput": "accounts", "KeyInput": "keys", "KeyUpdate": "keys", "BudgetInput": "budgets",
		"NewIdentityProvider": "identityProviders", "ComboInput": "combos", "DestinationInput": "destinations", "CustomModelInput": "models", "SettingsInput": "settings"} {
		have := schema.Properties[section].Items.Properties
		if section == "settings" {
			have = schema.Properties[section].Properties
		}
		for field := range doc.Components.Schemas[input].Properties {
			if have[field] == nil && !slices.Contains(elsewhere, field) {
				t.Errorf("%s: the file has no field %s", section, field)
			}
		}
	}
}
