package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// litellmFile has the forms of public files of LiteLLM, with invented names.
const litellmFile = `
model_list:
  - model_name: big            # two accounts, with weights
    litellm_params: {model: openai/gpt-6-sol, api_key: os.environ/OPENAI_API_KEY, weight: 3}
    model_info: {description: Large, mode: chat}
  - model_name: big
    litellm_params: {model: azure/big-eu, api_base: "https://acme-eu.openai.azure.com/", api_version: 2024-10-21, api_key: os.environ/AZURE_KEY_EU, weight: 1}
  - model_name: small
    litellm_params: {model: anthropic/claude-haiku-4-5, api_key: sk-ant-literal-0123456789, temperature: 0.2, max_tokens: 100}
  - model_name: anthropic/claude-haiku-4-5
    litellm_params: {model: anthropic/claude-haiku-4-5, api_key: sk-ant-literal-0123456789}
  - model_name: team/vectors
    litellm_params: {model: hosted_vllm/own-embed, api_base: "http://vllm.acme.example:8000/v1", api_key: EMPTY, input_cost_per_token: 0.0000005, output_cost_per_token: 0}
    model_info: {mode: embedding, max_input_tokens: 512}
  - model_name: local
    litellm_params: {model: ollama_chat/llama3, api_base: "http://10.0.0.5:11434"}
  - model_name: ordered
    litellm_params: {model: groq/llama-3.1-8b-instant, order: 2}
  - model_name: ordered
    litellm_params: {model: cerebras/llama3.1-8b, order: 1, rpm: 30}
  - model_name: nova
    litellm_params: {model: bedrock/converse/amazon.nova-micro-v1:0, aws_region_name: eu-west-1, aws_access_key_id: os.environ/AWS_ID, aws_secret_access_key: "${AWS_SECRET}"}
  - model_name: mine
    litellm_params: {model: openai/gpt-6-sol, api_key: os.environ/SECOND_OPENAI_KEY}
  - model_name: unknown
    litellm_params: {model: nowhere/model, api_key: os.environ/NOWHERE_KEY}
  - model_name: hidden
    litellm_params: {model: os.environ/SOME_MODEL}
  - model_name: groq/*
    litellm_params: {model: groq/*}
router_settings:
  routing_strategy: simple-shuffle
  num_retries: 2
  timeout: 90
  model_group_alias: {tiny: small, large: {model: big, hidden: true}}
  fallbacks: [{big: [small, local]}, {small: [big, absent]}]
litellm_settings:
  drop_params: true
  context_window_fallbacks: [{local: [big]}]
  success_callback: [prometheus, langfuse, own.callback]
  cache: true
  max_budget: 100
  budget_duration: 30d
  request_timeout: 60
general_settings:
  master_key: sk-master-literal-9876543210
  database_url: os.environ/DATABASE_URL
  alerting: [slack]
  colour: red
general_settings:
  master_key: sk-master-literal-9876543210
  alerting: [slack]
environment_variables: {SOMETHING: a-literal-value}
`

// importVariables are what the imported file needs.
var importVariables = []string{"OPENAI_API_KEY", "sk-openai-0123456789", "AZURE_KEY_EU", "0123456789abcdef", "ANTHROPIC_APIKEY", "sk-ant-0123456789",
	"GROQ_API_KEY", "gsk_0123456789", "CEREBRAS_API_KEY", "csk-0123456789", "AWS_ID", "AKIA0123456789ABCDEF", "AWS_SECRET", "secret-0123456789",
	"SECOND_OPENAI_KEY", "sk-second-0123456789", "SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0/B0/x0123456789"}

func TestLiteLLMIsImported(t *testing.T) {
	w := newWorld(t)
	code, out, report := w.run(litellmFile, "import", "litellm", "-")
	if code != 0 {
		t.Fatalf("exit %d, %s", code, report)
	}
	for _, want := range []string{
		"combos:", "  - name: big-members\n    models:\n      - openai/gpt-6-sol\n      - azure/big-eu\n    strategy: weighted\n    weights:\n      azure/big-eu: 1\n      openai/gpt-6-sol: 3\n",
		"  - name: big\n    models:\n      - big-members\n      - anthropic/claude-haiku-4-5\n      - ollama/llama3\n",
		"  - name: small\n    models:\n      - anthropic/claude-haiku-4-5\n      - big-members\n",
		"  - name: ordered\n    models:\n      - cerebras/llama3.1-8b\n      - groq/llama-3.1-8b-instant\n",
		"      limit: stop\n", "team-vectors: vllm.acme.example-8000/own-embed", "contextLength: 512", "type: embedding", "vllm.acme.example-8000/own-embed: 0.5/0",
		"mine: second_openai/gpt-6-sol", "baseUrl: http://10.0.0.5:11434/v1", "region: eu-west-1", "firstByteSeconds: 60", "name: slack", "window: month", "limit: 100",
		"  - name: large\n    models:\n      - big\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, secret := range []string{"literal", "a-literal-value"} {
		if strings.Contains(out+report, secret) {
			t.Errorf("%q is in the output", secret)
		}
	}
	for _, want := range []string{
		"none     model_list[10] unknown", "none     model_list[11] hidden", "none     litellm_params.temperature", "none     litellm_settings.cache", "none     router_settings.num_retries", "none     litellm_settings.success_callback own.callback",
		"none     fallback to absent", "none     general_settings ", "equal    litellm_settings.drop_params", "equal    litellm_settings.success_callback langfuse",
		"renamed  team/vectors", "clients write team-vectors", "to set   ANTHROPIC_APIKEY", "which stands in the imported file",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in the report\n%s", want, report)
		}
	}
	w.planAndApply(out, importVariables...)
}

// planAndApply plans and applies a file on the machine, after which there is nothing to plan.
func (w *world) planAndApply(text string, variables ...string) {
	w.Helper()
	env := w.env(variables...)
	for _, tt := range []struct {
		code int
		args []string
	}{{2, []string{"plan", "-"}}, {0, []string{"apply", "-", "--yes"}}, {0, []string{"plan", "-"}}} {
		if code, out, failed := w.runIn(env, text, tt.args...); code != tt.code {
			w.Fatalf("weir %v: exit %d, want %d: %s%s\n%s", tt.args, code, tt.code, out, failed, text)
		}
	}
}

// A model that several accounts of a provider serve under all its names needs no combo.
func TestAccountsThatServeTheSameShareAName(t *testing.T) {
	w := newWorld(t)
	const text = `
model_list:
  - {model_name: chat, litellm_params: {model: openai/gpt-6-sol, api_key: os.environ/ONE_API_KEY, rpm: 10}}
  - {model_name: chat, litellm_params: {model: openai/gpt-6-sol, api_key: os.environ/TWO_API_KEY, rpm: 20}}
`
	_, out, _ := w.run(text, "import", "litellm", "-")
	if !strings.Contains(out, "chat: openai/gpt-6-sol") || strings.Contains(out, "prefix") || strings.Contains(out, "combos") {
		t.Errorf("%s", out)
	}
	w.planAndApply(out, "ONE_API_KEY", "sk-one-0123456789", "TWO_API_KEY", "sk-two-0123456789")
}

// portkeyFile is a config of Portkey.
const portkeyFile = `{"name":"main","strategy":{"mode":"fallback","on_status_codes":[429]},"retry":{"attempts":3},"cache":{"mode":"semantic"},"targets":[
		{"provider":"@openai-prod","override_params":{"model":"gpt-6-sol","temperature":0.1}},
		{"strategy":{"mode":"loadbalance"},"targets":[
			{"virtual_key":"anthropic-a","weight":0.7,"override_params":{"model":"claude-haiku-4-5"}},
			{"provider":"groq","api_key":"gsk_literal0123456789","weight":0.3,"override_params":{"model":"llama-3.1-8b-instant"}}]},
		{"provider":"nowhere","api_key":"x"}]}`

func TestPortkeyIsImported(t *testing.T) {
	w := newWorld(t)
	code, out, report := w.run(portkeyFile, "import", "portkey", "-")
	if code != 0 || strings.Contains(out+report, "literal") {
		t.Fatalf("exit %d, %s%s", code, out, report)
	}
	for _, want := range []string{"  - name: main\n    models:\n      - openai/gpt-6-sol\n      - main-2\n", "strategy: weighted", "anthropic/claude-haiku-4-5: 70"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, want := range []string{"none    cache", "equal   retry", "none    override_params.temperature", "none    target main[2]", "to set  OPENAI_PROD_APIKEY"} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
	w.planAndApply(out, "OPENAI_PROD_APIKEY", "sk-one-0123456789", "ANTHROPIC_A_APIKEY", "sk-two-0123456789", "GROQ_APIKEY", "gsk_0123456789")
}

// Rows of one-api as sqlite3 -json prints them, with invented names, and an answer of new-api's list,
// which has no keys.
const (
	oneAPIRows = `[{"id":1,"type":1,"key":"sk-literal-0123456789","status":1,"name":"main","weight":0,"base_url":"","other":null,"models":"gpt-6-sol,gpt-fast","group":"default","model_mapping":"{\"gpt-fast\":\"gpt-6-luna\"}","priority":10,"config":"{}","system_prompt":null},
		{"id":2,"type":1,"key":"sk-literal-9876543210","status":1,"name":"main","base_url":"https://proxy.acme.example/","models":"gpt-6-sol","group":"default,vip","model_mapping":"","priority":0,"config":""},
		{"id":3,"type":3,"key":"literal-azure-key","status":1,"name":"eu","base_url":"https://acme-eu.openai.azure.com","models":"gpt-3.5-turbo","group":"default","priority":0,"config":"{\"api_version\":\"2024-10-21\"}"},
		{"id":4,"type":14,"key":"sk-ant-literal-0123456789","status":2,"name":"old","base_url":"","models":"claude-haiku-4-5","priority":0},
		{"id":5,"type":15,"key":"literal|literal","status":1,"name":"文心","base_url":"","models":"ERNIE-4.0","priority":0},
		{"id":6,"type":40,"key":"literal-doubao","status":1,"name":"豆包","base_url":"","models":"doubao-pro","priority":0,"system_prompt":"Be brief."},
		{"id":7,"type":33,"key":"","status":1,"name":"aws","models":"anthropic.claude-3-haiku-20240307-v1:0,claude-3-haiku-20240307","priority":0,"config":"{\"region\":\"eu-west-1\",\"ak\":\"AKIALITERAL012345678\",\"sk\":\"literal-secret\"}"},
		{"id":8,"type":50,"key":"none","status":1,"name":"vllm","base_url":"http://vllm.acme.example:8000/v1","models":"own","priority":0}]`
	newAPIList = `{"success":true,"data":{"items":[{"id":1,"type":1,"key":"","status":1,"name":"a","weight":3,"auto_ban":1,"base_url":null,"models":"gpt-6-sol","group":"default","model_mapping":null,"priority":0},
		{"id":2,"type":20,"key":"","status":1,"name":"b","weight":1,"base_url":"","models":"gpt-6-sol","group":"default","model_mapping":"{\"gpt-6-sol\":\"x\",\"x\":\"openai/gpt-6-sol\"}","priority":0},
		{"id":3,"type":8,"key":"","status":1,"name":"own","base_url":"https://models.acme.example/v1/chat/completions","models":"own","group":"default","priority":0},
		{"id":4,"type":36,"key":"","status":1,"name":"songs","models":"suno","priority":0},
		{"id":5,"type":39,"key":"","status":1,"name":"edge","other":"0123456789abcdef0123456789abcdef","models":"@cf/meta/llama","priority":0}],"total":5}}`
)

func TestChannelsOfOneAPIAreImported(t *testing.T) {
	w := newWorld(t)
	code, out, report := w.run(oneAPIRows, "import", "one-api", "-")
	if code != 0 || regexp.MustCompile(`(?i)literal`).MatchString(out+report) {
		t.Fatalf("exit %d, %s%s", code, out, report)
	}
	for _, want := range []string{
		"  - name: gpt-6-sol\n    models:\n      - openai/gpt-6-sol\n      - proxy.acme.example/gpt-6-sol\n", "gpt-fast: openai/gpt-6-luna",
		"baseUrl: https://proxy.acme.example/v1", "gpt-3.5-turbo: azure/gpt-35-turbo", "api_version: \"2024-10-21\"", "baseUrl: https://ark.cn-beijing.volces.com/api/v3",
		"region: eu-west-1", "baseUrl: http://vllm.acme.example:8000/v1", "anthropic.claude-3-haiku-20240307-v1:0: bedrock/anthropic.claude-3-haiku-20240307-v1:0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, want := range []string{"none    channel 4 old", "it is disabled", "none    channel 5 文心", "no provider for its type 15", "none    system_prompt", "equal   group",
		"none    model claude-3-haiku-20240307 of channel 7 aws", "to set  MAIN_API_KEY", "to set  MAIN_2_API_KEY", "to set  CHANNEL_6_API_KEY"} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
	w.planAndApply(out, "MAIN_API_KEY", "sk-one-0123456789", "MAIN_2_API_KEY", "sk-two-0123456789", "EU_API_KEY", "0123456789abcdef", "CHANNEL_6_API_KEY", "key-0123456789",
		"BEDROCK_ACCESSKEYID", "AKIA0123456789ABCDEF", "BEDROCK_SECRETACCESSKEY", "secret-0123456789")
}

func TestChannelsOfNewAPIAreImported(t *testing.T) {
	w := newWorld(t)
	code, out, report := w.run(newAPIList, "import", "new-api", "-")
	if code != 0 {
		t.Fatalf("exit %d, %s%s", code, out, report)
	}
	for _, want := range []string{"  - name: gpt-6-sol\n    models:\n      - openai/gpt-6-sol\n      - openrouter/openai/gpt-6-sol\n", "strategy: weighted", "openai/gpt-6-sol: 3",
		"baseUrl: https://models.acme.example/v1\n", "account_id: 0123456789abcdef0123456789abcdef"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(report, "none     channel 4 songs") || !strings.Contains(report, "to set   A_API_KEY") || strings.Contains(report, "ACCOUNT_ID") {
		t.Error(report)
	}
	w.planAndApply(out, "A_API_KEY", "sk-one-0123456789", "B_API_KEY", "sk-or-0123456789", "OWN_API_KEY", "sk-own-0123456789", "EDGE_API_KEY", "cf-0123456789")
}

func TestEnvironmentIsImported(t *testing.T) {
	w := newWorld(t)
	variables := []string{"OPENAI_API_KEY", "sk-one-0123456789", "GOOGLE_API_KEY", "AIza0123456789", "HF_TOKEN", "hf_0123456789",
		"AWS_ACCESS_KEY_ID", "AKIA0123456789ABCDEF", "AWS_SECRET_ACCESS_KEY", "secret-0123456789", "AWS_DEFAULT_REGION", "eu-west-1", "CLOUDFLARE_API_TOKEN", "cf-0123456789"}
	code, out, report := w.runIn(w.env(variables...), "", "import", "env")
	if code != 0 || strings.Contains(out+report, "0123456789") {
		t.Fatalf("exit %d, %s%s", code, out, report)
	}
	if providers := regexp.MustCompile(`provider: (\S+)`).FindAllString(out, -1); strings.Join(providers, " ") !=
		"provider: openai provider: gemini provider: bedrock provider: huggingface" {
		t.Errorf("%v\n%s%s", providers, out, report)
	}
	if !strings.Contains(report, "no variable has its account_id") {
		t.Errorf("%s", report)
	}
	w.planAndApply(out, variables...)
	if code, _, failed := w.run("", "import", "env"); code != 1 || !strings.Contains(failed, "OPENAI_API_KEY") {
		t.Errorf("without keys: exit %d, %s", code, failed)
	}
}

func TestOpenRouterIsImported(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.home, "weir.yaml")
	code, _, report := w.run("", "import", "openrouter", "--out", file)
	if code != 0 || !strings.Contains(report, "weir import env") || !strings.Contains(report, "to set  OPENROUTER_API_KEY") {
		t.Errorf("exit %d, %s", code, report)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.planAndApply(string(raw), "OPENROUTER_API_KEY", "sk-or-0123456789")
	if code, _, failed := w.run("", "import", "openrouter", "--out", file); code != 1 || !strings.Contains(failed, "--force") {
		t.Errorf("exit %d, %s", code, failed)
	}
}

func TestFilesThatCannotBeImported(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ kind, text, want string }{
		{"litellm", "a: [", "yaml: line 1"}, {"litellm", "a: b", "no model_list"}, {"litellm", "- a", "cannot"}, {"litellm", "model_list: [5, {}]", ""},
		{"litellm", "model_list: &a [*a]", "contains itself"},
		{"portkey", "{", "JSON"}, {"portkey", "{}", "no targets"}, {"portkey", "[]", "JSON"},
		{"one-api", "{", "sqlite3 -json"}, {"one-api", `{"success":false,"message":"no"}`, "no channels"}, {"new-api", "[]", "no channels"}, {"new-api", `[{"type":1,"models":5}]`, "channel"},
		{"one-api", `[{"type":1,"auto_ban":1}]`, "weir import new-api"}, {"new-api", `[{"type":1,"config":""}]`, "weir import one-api"},
	} {
		code, out, failed := w.run(tt.text, "import", tt.kind, "-")
		if tt.want != "" && (code != 1 || !strings.Contains(failed, tt.want)) || tt.want == "" && code != 0 {
			t.Errorf("%s %q: exit %d, %s%s", tt.kind, tt.text, code, out, failed)
		}
	}
}
