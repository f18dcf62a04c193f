package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
)

// channelType is a type of channels: the provider, "" a server with OpenAI's API; the address
// without that of the channel; and the path that both gateways put behind either.
type channelType struct{ provider, host, path string }

// channelTypes are the types that one-api and new-api have in common, by their numbers:
// relay/channeltype/define.go and url.go of one-api, constant/channel.go of new-api.
var channelTypes = map[int64]channelType{
	1: {"openai", "https://api.openai.com", "/v1"}, 3: {"azure", "", ""},
	6: {"", "https://api.openaimax.com", "/v1"}, 7: {"", "https://api.ohmygpt.com", "/v1"}, 8: {"", "", "/v1"},
	9: {"", "https://api.caipacity.com", "/v1"}, 10: {"", "https://api.aiproxy.io", "/v1"},
	12: {"", "https://api.api2gpt.com", "/v1"}, 13: {"", "https://api.aigc2d.com", "/v1"},
	14: {"anthropic", "https://api.anthropic.com", "/v1"}, 16: {"", "https://open.bigmodel.cn", "/api/paas/v4"},
	17: {"", "https://dashscope.aliyuncs.com", "/compatible-mode/v1"}, 20: {"openrouter", "https://openrouter.ai/api", "/v1"},
	22: {"", "https://fastgpt.run/api/openapi", "/v1"}, 24: {"gemini", "https://generativelanguage.googleapis.com", ""},
	25: {"", "https://api.moonshot.cn", "/v1"}, 31: {"", "https://api.lingyiwanwu.com", "/v1"}, 33: {"bedrock", "", ""},
}

// oneAPITypes and newAPITypes are those of one of them.
var oneAPITypes = map[int64]channelType{
	2: {"", "https://oa.api2d.net", "/v1"}, 4: {"", "https://api.closeai-proxy.xyz", "/v1"}, 5: {"", "https://api.openai-sb.com", "/v1"},
	19: {"", "https://ai.360.cn", "/v1"}, 26: {"", "https://api.baichuan-ai.com", "/v1"}, 28: {"mistral", "https://api.mistral.ai", "/v1"},
	29: {"groq", "https://api.groq.com/openai", "/v1"}, 30: {"ollama", "http://localhost:11434", "/v1"}, 32: {"", "https://api.stepfun.com", "/v1"},
	35: {"cohere", "https://api.cohere.ai", "/v1"}, 36: {"deepseek", "https://api.deepseek.com", "/v1"}, 37: {"cloudflare", "https://api.cloudflare.com", ""},
	39: {"together", "https://api.together.xyz", "/v1"}, 40: {"", "https://ark.cn-beijing.volces.com", "/api/v3"}, 41: {"", "https://api.novita.ai/v3/openai", ""},
	42: {"vertex", "", ""}, 44: {"", "https://api.siliconflow.cn", "/v1"}, 45: {"xai", "https://api.x.ai", "/v1"},
	46: {"replicate", "https://api.replicate.com/v1/models", ""}, 47: {"", "https://qianfan.baidubce.com", "/v2"},
	48: {"", "https://spark-api-open.xf-yun.com", "/v1"}, 49: {"", "https://dashscope.aliyuncs.com", "/compatible-mode/v1"}, 50: {"", "", ""},
	51: {"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", ""},
}

var newAPITypes = map[int64]channelType{
	4: {"ollama", "http://localhost:11434", "/v1"}, 8: {"", "", ""}, 19: {"", "https://api.360.cn", "/v1"},
	26: {"", "https://open.bigmodel.cn", "/api/paas/v4"}, 27: {"perplexity", "https://api.perplexity.ai", ""},
	34: {"cohere", "https://api.cohere.ai", "/v1"}, 38: {"jina", "https://api.jina.ai", "/v1"}, 39: {"cloudflare", "https://api.cloudflare.com", ""},
	40: {"", "https://api.siliconflow.cn", "/v1"}, 41: {"vertex", "", ""}, 42: {"mistral", "https://api.mistral.ai", "/v1"},
	43: {"deepseek", "https://api.deepseek.com", "/v1"}, 45: {"", "https://ark.cn-beijing.volces.com", "/api/v3"},
	46: {"", "https://qianfan.baidubce.com", "/v2"}, 47: {"", "", "/v1"}, 48: {"xai", "https://api.x.ai", "/v1"},
	56: {"replicate", "https://api.replicate.com", ""},
}

// channel is a row of the table channels of one-api or new-api.
type channel struct {
	ID           int64  `json:"id"`
	Type         int64  `json:"type"`
	Key          string `json:"key"` // new-api: several, one a line
	Status       int64  `json:"status"`
	Name         string `json:"name"`
	Weight       int    `json:"weight"`
	CreatedTime  int64  `json:"created_time"`
	BaseURL      string `json:"base_url"`
	Other        string `json:"other"` // version, region or account, by the type
	Models       string `json:"models"`
	Group        string `json:"group"`
	Mapping      string `json:"model_mapping"`
	Priority     int    `json:"priority"`
	Config       string `json:"config"` // one-api: what is in Other, as JSON
	Organization string `json:"openai_organization"`
	SystemPrompt string `json:"system_prompt"`
	Parameters   string `json:"param_override"`
	Headers      string `json:"header_override"`
	Codes        string `json:"status_code_mapping"`
}

// dotsRemoved is until when new-api removes the dots of deployments of Azure, by the time of the
// channel: AzureNoRemoveDotTime, 2025-05-10. one-api always does.
const dotsRemoved = 1746806400

func (i *importer) oneAPI(_ context.Context, in *input) error { return i.channels(in, false) }
func (i *importer) newAPI(_ context.Context, in *input) error { return i.channels(in, true) }

// channels reads the rows of the table channels in JSON, as sqlite3 -json prints them, or an
// answer of GET /api/channel/, which has no keys.
func (i *importer) channels(in *input, isNew bool) error {
	raw, err := i.readFile(in.args[0])
	if err != nil {
		return err
	}
	if !gjson.ValidBytes(raw) {
		return fmt.Errorf("%s: it is not JSON; sqlite3 -json one-api.db 'select * from channels' prints it", in.args[0])
	}
	rows := gjson.ParseBytes(raw)
	for _, path := range []string{"data", "items"} {
		if part := rows.Get(path); rows.IsObject() && part.Exists() {
			rows = part
		}
	}
	if !rows.IsArray() || !has(rows, "0.type") {
		return fmt.Errorf("%s: it has no channels", in.args[0])
	}
	switch hasBan := has(rows, "0.auto_ban"); { // a field of new-api alone, as config is one of one-api
	case !isNew && hasBan:
		return fmt.Errorf("%s: it has channels of new-api, whose types have other numbers: weir import new-api", in.args[0])
	case isNew && !hasBan && has(rows, "0.config"):
		return fmt.Errorf("%s: it has channels of one-api, whose types have other numbers: weir import one-api", in.args[0])
	}
	variables := map[string]string{} // of keys
	for _, row := range rows.Array() {
		var c channel
		if err := json.Unmarshal([]byte(row.Raw), &c); err != nil {
			return fmt.Errorf("%s: channel %s: %w", in.args[0], row.Get("id").Raw, err)
		}
		i.channel(&c, isNew, variables)
	}
	return nil
}

// channel takes a channel: an account for each key, a member of each model.
func (i *importer) channel(c *channel, isNew bool, variables map[string]string) {
	entry := fmt.Sprintf("channel %d %s", c.ID, c.Name)
	own := oneAPITypes
	if isNew {
		own = newAPITypes
	}
	t, known := own[c.Type]
	if !known {
		t, known = channelTypes[c.Type]
	}
	d, base := provider.Lookup(t.provider), strings.TrimRight(c.BaseURL, "/")
	switch {
	case !known:
		i.note(none, entry, fmt.Sprintf("weir has no provider for its type %d", c.Type))
		return
	case c.Status > 1:
		i.note(none, entry, "it is disabled")
		return
	case base == t.host && d != nil:
		base = ""
	case isNew && c.Type == 8: // the whole address of a call
		base = strings.TrimSuffix(base, "/chat/completions")
	case d != nil && (d.ID == "azure" || base == ""):
	default:
		if base = cmp.Or(base, t.host); !strings.HasPrefix(base, "https://gateway.ai.cloudflare.com") {
			base = strings.TrimSuffix(base, t.path) + t.path
		}
	}
	if (d == nil || d.ID == "azure") && base == "" || strings.Contains(base, "{") {
		i.note(none, entry, "it has no address that weir can call")
		return
	}
	keys := []string{c.Key}
	if isNew && t.provider != "vertex" {
		keys = strings.Split(strings.Trim(c.Key, "\n"), "\n")
	}
	for _, key := range keys {
		a := (&litellm{importer: i}).accountOf(d, base, "", c.parameters(t.provider, key, isNew, variables))
		if a == nil {
			i.note(none, entry, "weir calls this provider at its own address only")
			return
		}
		i.note(taken, entry, "the account "+a.Name)
		i.channelModels(c, entry, a, isNew)
	}
	for _, v := range []struct{ field, how, name, why string }{
		{c.SystemPrompt, none, "system_prompt", "clients send it"}, {c.Parameters, none, "param_override", "clients send them: weir has no defaults of requests"},
		{c.Headers, none, "header_override", "weir passes the header fields of a list"}, {c.Codes, none, "status_code_mapping", "clients get the status of weir's errors"},
		{strings.TrimPrefix(c.Group, "default"), equal, "group", "keys limited to models: weir keys add --models"},
	} {
		if v.field != "" && v.field != "{}" {
			i.note(v.how, v.name, v.why)
		}
	}
}

// parameters returns the credentials and options of a channel as those of a deployment of LiteLLM.
// Keys are never taken themselves: each has a variable, which is named after the channel.
func (c *channel) parameters(id, key string, isNew bool, variables map[string]string) map[string]any {
	config := gjson.Parse(c.Config)
	out := map[string]any{"organization": c.Organization}
	switch id {
	case "azure":
		out["api_version"] = cmp.Or(config.Get("api_version").Str, c.Other)
	case "cloudflare":
		out["account_id"] = cmp.Or(config.Get("user_id").Str, c.Other)
	case "bedrock":
		out["aws_region_name"] = config.Get("region").Str
		out["aws_access_key_id"], out["aws_secret_access_key"] = config.Get("ak").Str, config.Get("sk").Str
		if parts := strings.Split(key, "|"); isNew {
			out["aws_region_name"] = parts[len(parts)-1]
			switch key = ""; len(parts) {
			case 3:
				out["aws_access_key_id"], out["aws_secret_access_key"] = parts[0], parts[1]
			case 2: // an API key of Bedrock
				key = parts[0]
			}
		} else {
			key = ""
		}
		if key == "" {
			return out
		}
	case "vertex":
		out["vertex_project"], out["vertex_location"] = config.Get("vertex_ai_project_id").Str, config.Get("region").Str
		out["vertex_credentials"] = config.Get("vertex_ai_adc").Str
		if isNew {
			place := gjson.Get(c.Other, "default").Str
			if place == "" && !strings.HasPrefix(c.Other, "{") {
				place = c.Other
			}
			out["vertex_project"], out["vertex_location"], out["vertex_credentials"] = gjson.Get(key, "project_id").Str, place, key
		}
		return out
	}
	if slices.Contains(placeholders, strings.ToLower(key)) {
		out["api_key"] = key
		return out
	}
	same := cmp.Or(key, fmt.Sprintf("channel %d", c.ID)) // GET /api/channel/ has no keys
	if variables[same] == "" {
		name := cmp.Or(word(c.Name), fmt.Sprintf("channel-%d", c.ID))
		free := variableOf(name, "api_key").Env
		for n := 2; slices.Contains(slices.Collect(maps.Values(variables)), free); n++ {
			free = variableOf(fmt.Sprintf("%s-%d", name, n), "api_key").Env
		}
		variables[same] = free
	}
	out["api_key"] = "os.environ/" + variables[same]
	return out
}

// channelModels makes an account a member of each model of a channel.
func (i *importer) channelModels(c *channel, entry string, a *importedAccount, isNew bool) {
	mapping := map[string]string{}
	if c.Mapping != "" && json.Unmarshal([]byte(c.Mapping), &mapping) != nil {
		i.note(none, "model_mapping of "+entry, "it is not an object of texts in JSON")
	}
	for _, name := range strings.Split(c.Models, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		id := cmp.Or(mapping[name], name)
		for hops := 0; isNew && hops < 8 && mapping[id] != ""; hops++ { // new-api follows chains
			id = mapping[id]
		}
		if a.row != nil && a.row.ID == "azure" && (!isNew || c.CreatedTime < dotsRemoved) {
			id = strings.ReplaceAll(id, ".", "")
		}
		if a.row != nil && a.row.ID == "bedrock" && !strings.Contains(id, ".") {
			i.note(none, "model "+name+" of "+entry, "its name at Bedrock is not in the file: weir models alias "+name+" bedrock/ID")
			continue
		}
		g := i.group(name)
		g.strategy = "affinity"
		m := groupMember{account: a, model: id, kind: kindIn(a.row, id, ""), order: -c.Priority}
		if isNew {
			m.weight = c.Weight
		}
		g.add(m)
	}
}
