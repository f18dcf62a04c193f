package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/pkg/catalog"
	"weir/pkg/provider"
)

// litellmProviders are the providers of LiteLLM whose names are neither ids nor aliases of
// weir. A URL is that of a server with OpenAI's API, "" one that api_base names.
var litellmProviders = map[string]string{
	"together_ai": "together", "fireworks_ai": "fireworks", "nvidia_nim": "nvidia", "azure_ai": "azure", "azure_text": "azure",
	"vertex_ai": "vertex", "vertex_ai_beta": "vertex", "ollama_chat": "ollama", "jina_ai": "jina", "cohere_chat": "cohere",
	"text-completion-openai": "openai", "bedrock_converse": "bedrock", "runwayml": "runway", "zhipu": "zai", "fal_ai": "fal",
	"github": "https://models.github.ai/inference", "codestral": "https://codestral.mistral.ai/v1",
	"nebius": "https://api.studio.nebius.ai/v1", "novita": "https://api.novita.ai/v3/openai",
	"volcengine": "https://ark.cn-beijing.volces.com/api/v3", "meta_llama": "https://api.llama.com/compat/v1",
	"featherless_ai": "https://api.featherless.ai/v1", "hyperbolic": "https://api.hyperbolic.xyz/v1",
	"hosted_vllm": "", "vllm": "", "lm_studio": "", "llamafile": "", "xinference": "", "litellm_proxy": "", "openai_like": "",
	"custom_openai": "", "text-generation-inference": "", "docker_model_runner": "", "lemonade": "",
}

// litellmVerdicts are the settings and parameters that are not taken, by their names.
var litellmVerdicts = func() map[string][2]string {
	all := map[string][2]string{}
	for _, v := range []struct{ how, names, why string }{
		{equal, "drop_params modify_params additional_drop_params", "fields that a provider does not take are dropped and named in x-weir-dropped"},
		{none, "num_retries max_retries retry_after retry_policy model_group_retry_policy",
			"an account is asked once, then the others and the further models of a combo; a single one is asked again after a broken connection or a 503: docs/fallback.md"},
		{equal, "allowed_fails allowed_fails_policy cooldown_time disable_cooldowns enable_pre_call_checks max_fallbacks enable_loadbalancing",
			"each account is tried once, and rests after a failure as its status says: docs/fallback.md"},
		{equal, "set_verbose json_logs log_level debug detailed_debug suppress_debug_info", "weir logs lines of JSON: --log-level"},
		{equal, "telemetry", "weir sends nothing home"},
		{equal, "turn_off_message_logging redact_user_api_key_info redact_messages_in_exceptions", "bodies are stored only with the setting capturePercent"},
		{equal, "master_key", "keys of weir (weir keys add), and the operator token (ADMIN_TOKEN)"},
		{equal, "database_url store_model_in_db database_connection_pool_limit database_connection_timeout disable_database allow_requests_on_db_unavailable proxy_batch_write_at use_redis_transaction_buffer salt_key background_workers",
			"weir has a store of its own; DATABASE_URL is for several servers"},
		{equal, "redis_host redis_port redis_password redis_url", "weir needs no Redis"},
		{equal, "maximum_spend_logs_retention_period maximum_spend_logs_retention_interval", "captureHours for bodies; requests are kept by number and age"},
		{equal, "proxy_base_url", "PUBLIC_URL"},
		{equal, "health_check_interval background_health_checks health_check_details", "calls and weir accounts test show the health of accounts"},
		{equal, "disable_auth", "REQUIRE_API_KEY=false"},
		{equal, "default_key_generate_params key_generation_settings upperbound_key_generate_params max_internal_user_budget internal_user_budget_duration default_internal_user_params default_team_settings",
			"each key has limits, a budget and an end of its own: weir keys add"},
		{equal, "extra_spend_tag_headers user_header_name", "tags of calls: the setting tagsFrom"},
		{equal, "enable_tag_filtering tag_filtering_match_any tags", "tags of keys and calls group usage; keys may be limited to models"},
		{equal, "merge_reasoning_content_in_choices use_chat_completions_url_for_anthropic_messages", "weir translates between the dialects"},
		{equal, "base_model max_input_tokens context_window id description mode supports_function_calling supports_vision supports_web_search supports_reasoning supports_tool_choice supports_prompt_caching supports_parallel_function_calling supports_response_schema supports_audio_input supports_pdf_input litellm_provider db_model",
			"the catalogue of weir and the providers' lists say it"},
		{equal, "access_groups", "keys limited to models: weir keys add --models"},
		{equal, "service_callback", "metrics of the server: GET /metrics"},
		{equal, "pass_through_params pass_through_endpoints", "fields that weir does not know pass on in the same dialect"},
		{equal, "alert_types alerting_threshold", "events of a destination: docs/guides/alerts.md"},
		{equal, "ui_username ui_password", "the dashboard is signed in to by weir init"},
		{equal, "max_output_tokens", "the catalogue of weir and the providers' lists say it"},
		{none, "rpm tpm rpm_limit tpm_limit max_parallel_requests", "accounts have no limits of their own, keys have: weir keys add --rpm; what providers limit is noticed"},
		{none, "cache cache_params cache_responses caching_groups", "weir stores no answers; prompt caches of providers are used"},
		{none, "max_tokens max_completion_tokens temperature top_p extra_body extra_headers thinking reasoning_effort default_params stream stop n seed response_format tools tool_choice", "clients send it: weir has no defaults of requests"},
		{none, "guardrails prompts custom_auth custom_prompt_dict post_call_rules", "weir has no hooks and no guardrails: docs/compare.md"},
	} {
		for _, name := range strings.Fields(v.names) {
			all[name] = [2]string{v.how, v.why}
		}
	}
	return all
}()

// litellm is the configuration of LiteLLM that is read.
type litellm struct {
	*importer
	list                       []any
	router, module, general    map[string]any
	strategy                   string
	defaults                   []string
	vertexProject, vertexPlace string
}

// litellm reads config.yaml.
func (i *importer) litellm(_ context.Context, in *input) error {
	raw, err := i.readFile(in.args[0])
	if err != nil {
		return err
	}
	l := &litellm{importer: i}
	var root yaml.Node
	var doc map[string]any
	err = yaml.Unmarshal(raw, &root)
	if l.lastOnly(&root); err == nil {
		err = root.Decode(&doc)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", in.args[0], err)
	}
	l.router, l.module, l.general = part(doc, "router_settings"), part(doc, "litellm_settings"), part(doc, "general_settings")
	if l.list, _ = doc["model_list"].([]any); len(l.list) == 0 {
		return fmt.Errorf("%s: it has no model_list", in.args[0])
	}
	l.vertexProject, l.vertexPlace = scalar(l.module["vertex_project"]), scalar(l.module["vertex_location"])
	l.strategy = l.routing()
	for at, one := range l.list {
		l.deployment(at, part(map[string]any{"": one}, ""))
	}
	l.settings()
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if !slices.Contains([]string{"model_list", "router_settings", "litellm_settings", "general_settings"}, name) {
			l.other(name, doc[name])
		}
	}
	return nil
}

// lastOnly leaves the last of several members of one name, as LiteLLM's parser does.
func (l *litellm) lastOnly(n *yaml.Node) {
	for _, one := range n.Content {
		l.lastOnly(one)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	last := map[string]int{}
	for at := 0; at+1 < len(n.Content); at += 2 {
		last[n.Content[at].Value] = at
	}
	var content []*yaml.Node
	for at := 0; at+1 < len(n.Content); at += 2 {
		if name := n.Content[at]; last[name.Value] == at {
			content = append(content, name, n.Content[at+1])
		} else {
			l.note(none, name.Value, fmt.Sprintf("it stands again below line %d; the last one counts", name.Line))
		}
	}
	n.Content = content
}

// other notes a section that is not read.
func (l *litellm) other(name string, v any) {
	switch name {
	case "environment_variables":
		for variable := range part(map[string]any{"": v}, "") {
			l.note(equal, name+"."+variable, "variables of the process; their values are not taken")
		}
	case "include":
		l.note(none, name, "import each of those files")
	default:
		l.verdict("", name)
	}
}

// verdict notes a setting by its name.
func (l *litellm) verdict(section, name string) {
	entry := strings.TrimPrefix(section+"."+name, ".")
	if v, ok := litellmVerdicts[name]; ok {
		l.note(v[0], entry, v[1])
	} else {
		l.note(none, entry, "weir has nothing of this name")
	}
}

// part returns a member that is a mapping.
func part(m map[string]any, name string) map[string]any {
	out, _ := m[name].(map[string]any)
	return out
}

// scalar returns a scalar as a text.
func scalar(v any) string {
	switch v.(type) {
	case nil, map[string]any, []any:
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// texts returns a list of texts, or the only one.
func texts(v any) (out []string) {
	if list, ok := v.([]any); ok {
		for _, one := range list {
			out = append(out, scalar(one))
		}
	} else if s := scalar(v); s != "" {
		out = append(out, s)
	}
	return out
}

// number returns a number, which LiteLLM also accepts as a text.
func number(v any) (float64, bool) {
	n, err := strconv.ParseFloat(scalar(v), 64)
	return n, err == nil
}

// variableForm matches a value that is a variable: os.environ/NAME, ${NAME} or $NAME.
var variableForm = regexp.MustCompile(`^(?:os\.environ/|\$)\{?([A-Za-z_][A-Za-z0-9_]*)\}?$`)

// variableIn returns the variable that a value names, or "".
func variableIn(text string) string {
	if m := variableForm.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// option returns an option of an account: a text, or a reference to the variable that it names.
func (i *importer) option(text, why string) any {
	if v := variableIn(text); v != "" {
		return i.setVariable(v, why)
	}
	return text
}

// placeholders are keys of servers that need none.
var placeholders = strings.Fields("none no-key not-needed not-used notneeded empty dummy fake fake-key anything ollama lm-studio sk-no-key-required sk-noauth na n/a a x")

// secretOf returns the reference to a secret, which is never taken itself.
func (i *importer) secretOf(account, field, text string) *Reference {
	if v := variableIn(text); v != "" {
		return i.setVariable(v, field+" of "+account)
	}
	if text == "" {
		return nil
	}
	return i.setVariable(variableOf(account, field).Env, field+" of "+account+", which stands in the imported file")
}

// provider returns the row of a deployment, its model, and the URL of a server of one's own.
func (l *litellm) provider(model, base, custom string) (d *provider.Descriptor, own, name string) {
	prefix, rest, slash := strings.Cut(model, "/")
	if custom != "" && custom != prefix {
		prefix, rest, slash = custom, model, true
	}
	if !slash {
		for _, id := range []string{"openai", "anthropic", "vertex", "cohere"} { // LiteLLM finds it by its list of models
			if _, ok := catalog.KindOf(id, model); ok {
				return provider.Lookup(id), "", model
			}
		}
		if regexp.MustCompile(`^(gpt-|o\d|chatgpt-|text-embedding-|dall-e|whisper-|tts-)`).MatchString(model) {
			return provider.Lookup("openai"), base, model
		}
		if strings.HasPrefix(model, "claude-") {
			return provider.Lookup("anthropic"), base, model
		}
		return nil, base, model
	}
	mapped, known := litellmProviders[prefix]
	switch {
	case strings.HasPrefix(mapped, "https://"):
		return nil, cmp.Or(base, mapped), rest
	case known && mapped != "":
		d = provider.Lookup(mapped)
	case known:
		return nil, base, rest
	default:
		d = providerNamed(prefix)
	}
	return d, base, rest
}

// modelID returns the provider's name of a model without what LiteLLM puts in front.
func modelID(d *provider.Descriptor, model string) string {
	model = strings.TrimLeft(model, "/")
	if d == nil {
		return model
	}
	switch d.ID {
	case "bedrock":
		model = regexp.MustCompile(`^(converse|invoke|converse_like|[a-z]{2}-[a-z]+-\d)/`).ReplaceAllString(model, "")
	case "openai", "azure":
		model = regexp.MustCompile(`^(responses|o_series|gpt5_series)/`).ReplaceAllString(model, "")
	case "huggingface":
		if p := strings.SplitN(model, "/", 3); len(p) == 3 {
			model = p[1] + "/" + p[2] + ":" + p[0]
		}
	}
	return model
}

// deploymentParams are the parameters of a deployment that are taken.
var deploymentParams = strings.Fields("model api_key api_base base_url api_version organization region_name aws_region_name vertex_project vertex_location vertex_credentials " +
	"aws_access_key_id aws_secret_access_key aws_session_token weight order custom_llm_provider input_cost_per_token output_cost_per_token " +
	"cache_read_input_token_cost cache_creation_input_token_cost")

// deployment takes an entry of model_list.
func (l *litellm) deployment(at int, d map[string]any) {
	params, info := part(d, "litellm_params"), part(d, "model_info")
	name, model := scalar(d["model_name"]), scalar(params["model"])
	entry := fmt.Sprintf("model_list[%d] %s", at, name)
	base := cmp.Or(scalar(params["api_base"]), scalar(params["base_url"]))
	if variableIn(base) == "" {
		base = regexp.MustCompile(`\$\{\w+\}`).ReplaceAllStringFunc(base, func(v string) string {
			return cmp.Or(l.variable(v[2:len(v)-1]), v)
		})
	}
	row, base, id := l.provider(model, base, scalar(params["custom_llm_provider"]))
	id = modelID(row, id)
	switch {
	case name == "" || model == "":
		l.note(none, entry, "it has no model_name or no model")
		return
	case variableIn(model) != "":
		l.note(none, entry, "its model is known only to the environment: "+variableIn(model))
		return
	case strings.Contains(base, "${") && variableIn(base) == "":
		l.note(none, entry, "its address has variables that are not set here: set them and import again")
		return
	case name == "*" && (model == "*" || base == ""):
		l.note(equal, entry, "clients name any model as PREFIX/MODEL, with an account at its provider: weir import env")
		return
	case row == nil && base == "":
		l.note(none, entry, "weir has no such provider, and the deployment no api_base")
		return
	}
	a := l.accountOf(row, base, model, params)
	if a == nil {
		l.note(none, entry, "weir calls this provider at its own address only")
		return
	}
	l.note(taken, "model_list", "accounts, names of models, prices and limits")
	if strings.Contains(id, "*") {
		if a.used["*"] = true; name != model {
			l.note(equal, "name of "+name, "clients write PREFIX/MODEL")
		}
	} else {
		m := groupMember{account: a, model: id, kind: kindIn(row, id, scalar(info["mode"]))}
		g := l.group(name)
		g.strategy = l.strategy
		for _, w := range []string{"tpm", "rpm", "weight"} { // LiteLLM chooses by them, in this order of rank
			if n, ok := number(params[w]); ok && n > 0 {
				m.weight = int(math.Ceil(n))
			}
		}
		if n, ok := number(params["order"]); ok {
			m.order = int(n)
		}
		g.add(m)
		l.describe(m, params, info)
	}
	for _, p := range slices.Sorted(maps.Keys(params)) {
		if slices.Contains(deploymentParams, p) {
			continue // part of the deployment
		}
		if p == "timeout" || p == "stream_timeout" || p == "request_timeout" {
			l.note(equal, "litellm_params."+p, "the settings firstByteSeconds and idleSeconds, of all accounts")
		} else {
			l.verdict("litellm_params", p)
		}
	}
}

// kindIn returns the kind of a model.
func kindIn(d *provider.Descriptor, id, mode string) catalog.Kind {
	switch mode {
	case "chat", "completion", "responses":
		return catalog.LLM
	case "embedding":
		return catalog.Embedding
	case "image_generation", "image_edit":
		return catalog.Image
	case "audio_transcription":
		return catalog.STT
	case "audio_speech":
		return catalog.TTS
	case "rerank":
		return catalog.Rerank
	case "video_generation":
		return catalog.Video
	}
	if d != nil {
		if k, ok := catalog.KindOf(d.Alias, id); ok {
			return k
		}
	}
	return catalog.InferKind(id)
}

// accountOf returns the account of a deployment, or nil if weir has none like it.
func (l *litellm) accountOf(d *provider.Descriptor, base, model string, params map[string]any) *importedAccount {
	text := func(name string) string { return scalar(params[name]) }
	base = strings.TrimRight(base, "/")
	own, compatible := d, ""
	if d != nil && base != "" && !strings.HasPrefix(d.BaseURL, base) {
		switch {
		case d.ID == "ollama" || d.ID == "azure" || d.ID == "bedrock" || d.ID == "vertex":
		case d.ID == "anthropic":
			own, compatible = nil, "anthropic-compatible"
		case d.ID == "gemini" && strings.HasPrefix(base, "https://aiplatform.googleapis.com/"):
			own, base = provider.Lookup("vertex"), "" // express mode: an API key
		case d.ID == "gemini":
			return nil
		default:
			own, compatible = nil, "openai-compatible"
		}
	} else if d != nil {
		base = ""
	} else {
		compatible = "openai-compatible"
	}
	if own != nil && own.ID == "cloudflare" {
		base = ""
	}
	identity := strings.Join([]string{compatible, base, text("api_key"), text("api_version"), text("organization"), text("aws_region_name"),
		text("region_name"), text("aws_access_key_id"), text("vertex_project"), text("vertex_location"), text("vertex_credentials")}, "\x00")
	if own != nil {
		identity = own.ID + identity
	}
	return l.account(identity, own, accountName(own, base, model, text("api_key")), func(name string) FileAccount {
		f := FileAccount{Name: name, Provider: compatible}
		options := map[string]any{}
		if own == nil {
			if options["baseUrl"] = l.option(base, "address of "+f.Name); compatible == "anthropic-compatible" && variableIn(base) == "" {
				options["baseUrl"] = strings.TrimSuffix(base, "/v1") + "/v1"
			}
			if key := text("api_key"); !slices.Contains(placeholders, strings.ToLower(key)) {
				f.APIKey = l.secretOf(f.Name, "apiKey", key)
			}
		} else {
			f.Provider = own.ID
			l.cloud(&f, own, base, options, text)
		}
		if len(options) > 0 {
			f.Options = options
		}
		return f
	})
}

// accountName returns a name for an account: of its provider, its server or its key's variable.
func accountName(d *provider.Descriptor, base, model, key string) string {
	if d == nil {
		if v := variableIn(base); v != "" {
			return strings.ToLower(regexp.MustCompile(`_(API_)?(BASE|URL|HOST)(_URL)?$`).ReplaceAllString(v, ""))
		}
		if prefix, _, _ := strings.Cut(model, "/"); strings.HasPrefix(litellmProviders[prefix], "https://") {
			return prefix
		}
		return hostWord(base)
	}
	if v := variableIn(key); v != "" {
		return strings.ToLower(regexp.MustCompile(`_(API_)?(KEY|TOKEN)$`).ReplaceAllString(v, ""))
	}
	return d.ID
}

// cloud sets options and credentials of an account at a provider of weir.
func (l *litellm) cloud(f *FileAccount, d *provider.Descriptor, base string, options map[string]any,
	text func(string) string) {
	set := func(option, value string) {
		if value != "" {
			options[option] = l.option(value, option+" of "+f.Name)
		}
	}
	switch d.ID {
	case "ollama":
		if set("baseUrl", base); base != "" && variableIn(base) == "" {
			options["baseUrl"] = strings.TrimSuffix(base, "/v1") + "/v1"
		} else if base != "" {
			l.note(taken, "api_base of "+f.Name, "the address in "+variableIn(base)+" must end with /v1")
		}
		return
	case "azure", "bedrock", "vertex":
		set("baseUrl", base)
		set("api_version", text("api_version"))
	case "openai":
		set("organization", text("organization"))
	}
	places := map[string]string{"region": text("aws_region_name") + text("region_name"), "project": text("vertex_project"), "location": text("vertex_location"), "account_id": text("account_id")}
	if d.ID == "vertex" {
		places["project"], places["location"] = cmp.Or(places["project"], l.vertexProject), cmp.Or(places["location"], l.vertexPlace)
	}
	switch {
	case d.ID == "bedrock" && text("api_key") == "":
		f.AccessKeyID = l.secretOf(f.Name, "accessKeyId", cmp.Or(text("aws_access_key_id"), "os.environ/AWS_ACCESS_KEY_ID"))
		f.SecretAccessKey = l.secretOf(f.Name, "secretAccessKey", cmp.Or(text("aws_secret_access_key"), "os.environ/AWS_SECRET_ACCESS_KEY"))
		f.SessionToken = l.secretOf(f.Name, "sessionToken", text("aws_session_token"))
	case d.ID == "vertex" && text("api_key") == "":
		f.ServiceAccount = l.serviceAccount(f.Name, text("vertex_credentials"))
	case d.Auth.Scheme == provider.None:
	default:
		f.APIKey = l.secretOf(f.Name, "apiKey", cmp.Or(text("api_key"), "os.environ/"+l.keyVariables(d)[0]))
	}
	if d.ID == "vertex" && f.APIKey != nil {
		return // an API key has neither project nor location
	}
	for _, name := range d.Vars {
		if name != "resource" { // the address has it
			set(name, cmp.Or(places[name], l.place(d, name)))
		}
	}
}

// place returns the variable of a part of a provider's address, the first that is set.
func (i *importer) place(d *provider.Descriptor, name string) string {
	first := ""
	for _, e := range d.Environment {
		if e[0] != name {
			continue
		}
		if i.variable(e[1]) != "" {
			return "os.environ/" + e[1]
		}
		first = cmp.Or(first, "os.environ/"+e[1])
	}
	return first
}

// serviceAccount returns the reference to a key file of Google.
func (i *importer) serviceAccount(account, text string) *Reference {
	switch v := variableIn(text); {
	case v != "":
		return i.setVariable(v, "key file of "+account+" in JSON")
	case text != "" && !strings.HasPrefix(text, "{"):
		return &Reference{File: text}
	case i.variable("GOOGLE_APPLICATION_CREDENTIALS") != "":
		return &Reference{File: i.variable("GOOGLE_APPLICATION_CREDENTIALS")}
	}
	return i.setVariable(variableOf(account, "serviceAccount").Env, "key file of "+account+" in JSON")
}

// price is a price of a model; its name is known when the prefixes are.
type price struct {
	member groupMember
	text   string
}

// describe takes prices and limits of a deployment.
func (l *litellm) describe(m groupMember, params, info map[string]any) {
	var rates []string
	for _, name := range []string{"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost"} {
		rate := ""
		for _, from := range []map[string]any{info, params} {
			if n, ok := number(from[name]); ok {
				rate = strconv.FormatFloat(math.Round(n*1e12)/1e6, 'f', -1, 64)
			}
		}
		rates = append(rates, rate)
	}
	if text := strings.TrimRight(strings.Join(rates, "/"), "/"); text != "" {
		l.prices = append(l.prices, price{m, text})
	}
	context, _ := number(info["max_input_tokens"])
	longest, _ := number(info["max_output_tokens"])
	limits := m.account.row == nil && (context > 0 || m.kind != catalog.LLM)
	if limits {
		l.models = append(l.models, customModel{m, int(context), int(longest)})
	}
	for _, name := range slices.Sorted(maps.Keys(info)) {
		if slices.Contains(deploymentParams, name) || limits && slices.Contains([]string{"mode", "max_input_tokens", "max_output_tokens"}, name) {
			continue
		}
		l.verdict("model_info", name)
	}
}

// customModel is a model of a server of one's own.
type customModel struct {
	member           groupMember
	context, longest int
}

// routing returns the strategy of groups, and notes it.
func (l *litellm) routing() string {
	name := scalar(l.router["routing_strategy"])
	strategy, ok := map[string]string{"": "affinity", "simple-shuffle": "affinity", "least-busy": "least-busy", "latency-based-routing": "fastest",
		"cost-based-routing": "cheapest", "usage-based-routing": "least-busy", "usage-based-routing-v2": "least-busy"}[name]
	if !ok {
		strategy = "affinity"
	}
	if name != "" {
		l.note(taken, "router_settings.routing_strategy", name+" is the strategy "+strategy+" of combos, weighted with weights")
	}
	return strategy
}

// fallbacks takes lists of {name: [names]}.
func (l *litellm) fallbacks(entry string, v any, class string) {
	list, _ := v.([]any)
	for _, one := range list {
		row := part(map[string]any{"": one}, "")
		for _, name := range slices.Sorted(maps.Keys(row)) {
			to := texts(row[name])
			if name == "*" {
				l.defaults = append(l.defaults, to...)
				continue
			}
			g := l.group(name)
			if len(g.fallbacks) == 0 && class == "context_length" {
				g.on = map[string]string{"limit": "stop", "unavailable": "stop", "model_gone": "stop"}
			} else if class != "context_length" {
				g.on = nil
			}
			if class == "content_filter" {
				g.on = map[string]string{class: "next"}
			}
			g.fallbacks = append(g.fallbacks, to...)
		}
	}
	l.note(taken, entry, "models of combos")
}

// settings takes the three sections of settings.
func (l *litellm) settings() {
	for _, s := range []struct {
		section string
		values  map[string]any
	}{{"router_settings", l.router}, {"litellm_settings", l.module}, {"general_settings", l.general}} {
		for _, name := range slices.Sorted(maps.Keys(s.values)) {
			if !l.setting(s.section+"."+name, name, s.values[name], s.values) {
				l.verdict(s.section, name)
			}
		}
	}
	for _, g := range l.groups {
		if len(l.defaults) > 0 && !slices.Contains(l.defaults, g.name) {
			g.fallbacks = append(g.fallbacks, l.defaults...)
		}
	}
}

// setting takes a setting, and reports whether it noted it.
func (l *litellm) setting(entry, name string, v any, all map[string]any) bool {
	switch name {
	case "routing_strategy":
		return true // noted by routing
	case "vertex_project", "vertex_location":
		l.note(taken, entry, "options of accounts")
	case "fallbacks":
		l.fallbacks(entry, v, "")
	case "context_window_fallbacks":
		l.fallbacks(entry, v, "context_length")
	case "content_policy_fallbacks":
		l.fallbacks(entry, v, "content_filter")
	case "default_fallbacks":
		l.defaults = append(l.defaults, texts(v)...)
		l.note(taken, entry, "models of combos")
	case "model_group_alias":
		l.groupAliases(entry, v)
	case "timeout", "request_timeout", "stream_timeout":
		l.seconds(entry, v)
	case "max_parallel_requests", "global_max_parallel_requests":
		if n, ok := number(v); ok && n > 0 {
			most := int(n)
			l.set().MaxParallel = &most
			l.note(taken, entry, "the setting maxParallel")
		}
	case "store_prompts_in_spend_logs":
		l.prompts(entry, v)
	case "default_model":
		l.defaultModel = scalar(v)
		l.note(taken, entry, "the setting defaultModel")
	case "max_budget":
		l.budget(entry, v, scalar(all["budget_duration"]))
	case "budget_duration":
		if all["max_budget"] == nil {
			return false
		}
		l.note(taken, entry, "window of the budget")
	case "alerting":
		l.alerting(entry, v)
	case "callbacks", "success_callback", "failure_callback":
		l.callbacks(entry, v)
	default:
		return false
	}
	return true
}

// groupAliases takes {alias: name} and {alias: {model: name}}.
func (l *litellm) groupAliases(entry string, v any) {
	row := part(map[string]any{"": v}, "")
	for _, alias := range slices.Sorted(maps.Keys(row)) {
		l.aliases = append(l.aliases, [2]string{alias, cmp.Or(scalar(row[alias]), scalar(part(row, alias)["model"]))})
	}
	l.note(taken, entry, "aliases, and combos of one model for those of combos")
}

// seconds takes a time limit: the shortest of several.
func (l *litellm) seconds(entry string, v any) {
	n, ok := number(v)
	if !ok || n < 1 {
		l.note(none, entry, "it is not a number of seconds")
		return
	}
	s := l.set()
	if limit := min(max(int(n), 1), 3600); s.FirstByteSeconds == nil || limit < *s.FirstByteSeconds {
		s.FirstByteSeconds = &limit
	}
	l.note(taken, entry, "the setting firstByteSeconds")
}

func (l *litellm) prompts(entry string, v any) {
	if v != true {
		l.note(equal, entry, "bodies are stored only with the setting capturePercent")
		return
	}
	all := 100
	l.set().CapturePercent = &all
	l.note(taken, entry, "the setting capturePercent")
}

// budget takes the budget of all calls.
func (l *litellm) budget(entry string, v any, duration string) {
	window, ok := map[string]string{"": "total", "1m": "minute", "5h": "5h", "24h": "day", "1d": "day", "7d": "week", "30d": "month", "1mo": "month"}[duration]
	limit, isNumber := number(v)
	if !ok || !isNumber || limit <= 0 {
		l.note(none, entry, "weir has no window of "+duration+" for a budget")
		return
	}
	l.file.Budgets = append(l.file.Budgets, FileBudget{Name: "all", Limit: limit, Unit: "usd", Window: window})
	l.note(taken, entry, "the budget all")
}

// alerting takes the destination of alerts.
func (l *litellm) alerting(entry string, v any) {
	for _, kind := range texts(v) {
		if kind != "slack" {
			l.note(equal, entry+" "+kind, "destinations: docs/guides/alerts.md")
			continue
		}
		l.file.Destinations = append(l.file.Destinations, FileDestination{Name: "slack", Kind: "slack",
			Settings: map[string]any{"url": l.setVariable("SLACK_WEBHOOK_URL", "address of the destination slack")}})
		l.note(taken, entry, "the destination slack")
	}
}

// callbacks notes where weir has the same.
func (l *litellm) callbacks(entry string, v any) {
	for _, name := range texts(v) {
		switch {
		case name == "prometheus":
			l.note(equal, entry+" "+name, "GET /metrics: docs/guides/observability.md")
		case name == "otel" || strings.HasPrefix(name, "langfuse") || strings.HasPrefix(name, "arize") || name == "datadog" ||
			strings.HasPrefix(name, "langsmith") || name == "traceloop" || name == "logfire" || name == "opik" || name == "braintrust":
			l.note(equal, entry+" "+name, "a destination of kind otlp: docs/guides/opentelemetry.md")
		case name == "s3" || name == "s3_v2" || name == "gcs_bucket":
			l.note(equal, entry+" "+name, "the export of logs: docs/guides/log-export.md")
		default:
			l.note(none, entry+" "+name, "weir runs no code of others; webhooks and exports have what it records")
		}
	}
}
