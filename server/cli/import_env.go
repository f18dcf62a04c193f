package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/pkg/provider"
)

// environment takes the keys of providers that are variables of the environment.
func (i *importer) environment(context.Context, *input) error {
	for _, d := range provider.All() {
		text := map[string]string{}
		for _, name := range i.keyVariables(d) {
			if i.variable(name) != "" && text["api_key"] == "" {
				text["api_key"] = "os.environ/" + name
			}
		}
		switch {
		case text["api_key"] != "":
		case d.Auth.Scheme == provider.SigV4 && i.variable("AWS_ACCESS_KEY_ID") != "" && i.variable("AWS_SECRET_ACCESS_KEY") != "":
			if i.variable("AWS_SESSION_TOKEN") != "" {
				text["aws_session_token"] = "os.environ/AWS_SESSION_TOKEN"
			}
		case d.Auth.Scheme == provider.GoogleSA && i.variable("GOOGLE_APPLICATION_CREDENTIALS") != "":
		default:
			continue
		}
		f := FileAccount{Name: d.ID, Provider: d.ID}
		options := map[string]any{}
		l := &litellm{importer: i}
		base := ""
		if d.ID == "azure" && i.variable("AZURE_OPENAI_ENDPOINT") != "" {
			base = "os.environ/AZURE_OPENAI_ENDPOINT"
		}
		l.cloud(&f, d, base, options, func(name string) string { return text[name] })
		missing := slices.IndexFunc(d.Vars, func(v string) bool { return !i.isSet(options[v]) })
		if missing >= 0 && base == "" && f.ServiceAccount == nil && !(d.ID == "vertex" && f.APIKey != nil) {
			i.note(none, d.Name, "no variable has its "+d.Vars[missing])
			continue
		}
		if len(options) > 0 {
			f.Options = options
		}
		i.account(d.ID, d, d.ID, func(string) FileAccount { return f })
		i.note(taken, d.Name, "the account "+f.Name)
	}
	if len(i.accounts) == 0 {
		return errors.New("no variable has the key of a provider, such as OPENAI_API_KEY; weir accounts providers lists the providers")
	}
	return nil
}

// isSet reports whether an option is a text, or a variable that is set.
func (i *importer) isSet(option any) bool {
	ref, ok := option.(*Reference)
	return ok && i.variable(ref.Env) != "" || !ok && option != nil
}

// openrouter takes the account at OpenRouter. Its keys of providers cannot be read.
func (i *importer) openrouter(context.Context, *input) error {
	d := provider.Lookup("openrouter")
	i.account(d.ID, d, d.ID, func(name string) FileAccount {
		return FileAccount{Name: name, Provider: d.ID, APIKey: i.setVariable(i.keyVariables(d)[0], "apiKey of openrouter")}
	})
	i.note(taken, "account", "models are openrouter/VENDOR/MODEL; enter VENDOR/MODEL in clients as openrouter/VENDOR/MODEL")
	i.note(equal, "models of a request", "a combo of these models")
	i.note(equal, "keys of providers (BYOK)", "OpenRouter does not show them: set their variables, and weir import env adds the accounts")
	i.note(equal, "credit limits of keys", "budgets: weir keys add NAME --budget 20/month")
	return nil
}

// portkeyTarget is a config of Portkey, or a target in one.
type portkeyTarget struct {
	Strategy struct {
		Mode  string `json:"mode"`
		Codes []int  `json:"on_status_codes"`
	} `json:"strategy"`
	Targets    []portkeyTarget `json:"targets"`
	Name       string          `json:"name"`
	Provider   string          `json:"provider"`
	VirtualKey string          `json:"virtual_key"`
	APIKey     string          `json:"api_key"`
	CustomHost string          `json:"custom_host"`
	Weight     *float64        `json:"weight"`
	Override   map[string]any  `json:"override_params"`
	Resource   string          `json:"azure_resource_name"`
	Version    string          `json:"azure_api_version"`
	Deployment string          `json:"azure_deployment_id"`
	Region     string          `json:"aws_region"`
	Project    string          `json:"vertex_project_id"`
	Place      string          `json:"vertex_region"`
}

// portkeyProviders are the providers of Portkey whose names differ from LiteLLM's and weir's.
var portkeyProviders = map[string]string{"azure-openai": "azure", "azure-ai": "azure", "google": "gemini", "vertex-ai": "vertex", "together-ai": "together",
	"fireworks-ai": "fireworks", "mistral-ai": "mistral", "perplexity-ai": "perplexity", "x-ai": "xai", "workers-ai": "cloudflare", "stability-ai": "stability"}

// portkeyVerdicts are the members of a config that are not taken.
var portkeyVerdicts = map[string][2]string{
	"retry": {equal, "each account is tried once, then the next one: docs/fallback.md"}, "cache": {none, "weir stores no answers"},
	"request_timeout": {equal, "the settings firstByteSeconds and idleSeconds"}, "metadata": {equal, "tags of keys and calls"},
	"forward_headers": {none, "weir passes the header fields of a list"}, "input_guardrails": {none, "weir has no guardrails: docs/compare.md"},
	"output_guardrails": {none, "weir has no guardrails: docs/compare.md"}, "before_request_hooks": {none, "weir has no hooks"},
	"after_request_hooks": {none, "weir has no hooks"}, "strict_open_ai_compliance": {equal, "answers have the client's dialect"},
}

// portkey reads a config of Portkey. The combo is named by the config, else portkey.
func (i *importer) portkey(_ context.Context, in *input) error {
	raw, err := i.readFile(in.args[0])
	if err != nil {
		return err
	}
	var root portkeyTarget
	var members map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &root), json.Unmarshal(raw, &members)); err != nil {
		return fmt.Errorf("%s: it is not a config of Portkey in JSON: %w", in.args[0], err)
	}
	if len(root.Targets) == 0 && root.Provider == "" && root.VirtualKey == "" {
		return fmt.Errorf("%s: it has no targets and no provider", in.args[0])
	}
	for name, v := range portkeyVerdicts {
		if members[name] != nil {
			i.note(v[0], name, v[1])
		}
	}
	name := cmp.Or(word(root.Name), "portkey")
	if len(root.Targets) == 0 {
		root = portkeyTarget{Targets: []portkeyTarget{root}}
	}
	i.portkeyGroup(name, &root, 1)
	return nil
}

// maxNested bounds targets within targets.
const maxNested = 3

// portkeyGroup takes a strategy with its targets as a group.
func (i *importer) portkeyGroup(name string, t *portkeyTarget, depth int) {
	g := i.group(name)
	switch mode := t.Strategy.Mode; mode {
	case "loadbalance":
		g.strategy = "weighted"
		i.note(taken, "strategy loadbalance", "a combo with weights")
	case "conditional":
		i.note(none, "strategy conditional", "clients name the model; the targets are models of a combo")
	case "fallback":
		i.note(taken, "strategy fallback", "a combo, whose models are tried in order")
	}
	if len(t.Strategy.Codes) > 0 {
		i.note(equal, "strategy.on_status_codes", "classes of failures of a combo: its field on")
	}
	for n := range t.Targets {
		one := &t.Targets[n]
		entry := fmt.Sprintf("target %s[%d]", name, n)
		if len(one.Targets) > 0 {
			if depth == maxNested || g.strategy == "weighted" {
				i.note(none, entry, "targets within targets are taken one after another only")
				continue
			}
			inner := fmt.Sprintf("%s-%d", name, n+1)
			i.portkeyGroup(inner, one, depth+1)
			g.fallbacks = append(g.fallbacks, inner)
			continue
		}
		i.portkeyTarget(g, entry, one)
	}
	if len(g.members) == 0 && len(g.fallbacks) > 0 { // it begins with a nested one
		first := i.group(g.fallbacks[0])
		g.members, g.strategy = first.members, first.strategy
		g.fallbacks = append(slices.Clone(first.fallbacks), g.fallbacks[1:]...)
	}
}

// portkeyTarget takes a target as a member of a group.
func (i *importer) portkeyTarget(g *modelGroup, entry string, t *portkeyTarget) {
	id := strings.TrimPrefix(t.Provider, "@")
	if mapped, ok := portkeyProviders[id]; ok {
		id = mapped
	}
	if id == "" || providerNamed(id) == nil {
		for _, d := range provider.All() { // a virtual key is often named after its provider
			if strings.HasPrefix(cmp.Or(t.VirtualKey, id), d.ID) {
				id = d.ID
			}
		}
	}
	model, isText := t.Override["model"].(string)
	model = cmp.Or(model, t.Deployment)
	text := map[string]string{"api_key": t.APIKey, "aws_region_name": t.Region, "api_version": t.Version,
		"vertex_project": t.Project, "vertex_location": t.Place}
	if t.VirtualKey != "" || strings.HasPrefix(t.Provider, "@") {
		text["api_key"] = "os.environ/" + variableOf(strings.TrimPrefix(cmp.Or(t.VirtualKey, t.Provider), "@"), "apiKey").Env
	}
	if t.APIKey != "" && variableIn(t.APIKey) == "" {
		text["api_key"] = "os.environ/" + variableOf(cmp.Or(id, "server"), "apiKey").Env
	}
	params := map[string]any{}
	for name, v := range text {
		params[name] = v
	}
	base := t.CustomHost
	if t.Resource != "" {
		base = "https://" + t.Resource + ".openai.azure.com"
	}
	d := providerNamed(id)
	if d == nil && base == "" {
		i.note(none, entry, "weir has no provider "+cmp.Or(id, "of this virtual key"))
		return
	}
	a := (&litellm{importer: i}).accountOf(d, base, id+"/"+model, params)
	if a == nil {
		i.note(none, entry, "weir calls this provider at its own address only")
		return
	}
	i.note(taken, entry, "the account "+a.Name)
	for name := range t.Override {
		if name != "model" {
			i.note(none, "override_params."+name, "clients send it: weir has no defaults of requests")
		}
	}
	if !isText && model == "" {
		i.note(none, "model of "+entry, "it names no model (override_params.model); clients write PREFIX/MODEL")
		return
	}
	m := groupMember{account: a, model: model, kind: kindIn(d, model, ""), order: len(g.members)}
	if g.strategy == "weighted" {
		m.order = 0
		if t.Weight != nil {
			m.weight = max(int(*t.Weight*100), 1)
		}
	}
	g.add(m)
}
