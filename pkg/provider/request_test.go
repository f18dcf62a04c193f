package provider

import (
	"errors"
	"strings"
	"testing"

	"weir/pkg/store"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/secret"
)

func conn(base string, vars ...string) *store.Connection {
	c := &store.Connection{Data: store.ProviderData{BaseURL: base, Vars: map[string]string{}}}
	for i := 0; i+1 < len(vars); i += 2 {
		c.Data.Vars[vars[i]] = vars[i+1]
	}
	return c
}

// keyed is a connection with an API key alone.
func keyed(vars ...string) *store.Connection {
	c := conn("", vars...)
	c.Secrets = map[string]secret.Sealed{store.APIKey: "sealed"}
	return c
}

func TestEndpoint(t *testing.T) {
	tests := []struct {
		name     string
		provider string
		conn     *store.Connection
		endpoint string
		model    string
		want     string
	}{
		{"fixed", "mistral", conn(""), "embeddings", "m", "POST https://api.mistral.ai/v1/embeddings"},
		{"get", "mistral", conn(""), "models", "", "GET https://api.mistral.ai/v1/models"},
		{"base_ignored_where_not_allowed", "mistral", conn("https://evil.example.com/v1"), "embeddings", "m", "POST https://api.mistral.ai/v1/embeddings"},
		{"base_moves_a_local_provider", "ollama", conn("http://10.0.0.5:11434/v1/"), "embeddings", "m", "POST http://10.0.0.5:11434/v1/embeddings"},
		{"base_moves_addresses_outside_the_base", "ollama", conn("http://10.0.0.5:11434/v1"), "nativeTags", "", "GET http://10.0.0.5:11434/api/tags"},
		{"resource", "azure", conn("", "resource", "My-Res"), "embeddings", "d", "POST https://my-res.openai.azure.com/openai/v1/embeddings"},
		{"resource_replaced_by_base", "azure", conn("https://x.cognitiveservices.azure.com/openai/v1"), "embeddings", "d", "POST https://x.cognitiveservices.azure.com/openai/v1/embeddings"},
		{"deployment_is_the_model", "azure", conn("", "resource", "r", "api_version", "2025-03-01-preview"), "speech", "tts/1", "POST https://r.openai.azure.com/openai/deployments/tts%2F1/audio/speech?api-version=2025-03-01-preview"},
		{"speech_without_a_version", "azure", conn("", "resource", "r"), "speech", "tts", "POST https://r.openai.azure.com/openai/deployments/tts/audio/speech?api-version=2025-04-01-preview"},
		{"chat_of_a_deployment", "azure", conn("", "resource", "r", "api_version", "2024-10-21"), "chat", "my gpt", "POST https://r.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"},
		{"responses_of_no_deployment", "azure", conn("", "resource", "r", "apiVersion", "2025-03-01-preview"), "responses", "m", "POST https://r.openai.azure.com/openai/responses?api-version=2025-03-01-preview"},
		{"models_of_no_deployment", "azure", conn("", "resource", "r", "api_version", "2024-10-21"), "models", "", "GET https://r.openai.azure.com/openai/models?api-version=2024-10-21"},
		{"realtime", "openai", conn(""), "realtime", "gpt-realtime", "GET https://api.openai.com/v1/realtime?model=gpt-realtime"},
		{"realtime_model_is_encoded", "openai", conn(""), "realtime", "a&b=c", "GET https://api.openai.com/v1/realtime?model=a%26b%3Dc"},
		{"realtime_of_azure", "azure", conn("", "resource", "r"), "realtime", "my rt", "GET https://r.openai.azure.com/openai/v1/realtime?model=my%20rt"},
		{"realtime_of_a_preview", "azure", conn("", "resource", "r", "api_version", "preview"), "realtime", "rt", "GET https://r.openai.azure.com/openai/v1/realtime?model=rt"},
		{"realtime_of_a_version", "azure", conn("", "resource", "r", "api_version", "2024-10-01-preview"), "realtime", "rt", "GET https://r.openai.azure.com/openai/realtime?api-version=2024-10-01-preview&deployment=rt"},
		{"version_preview", "azure", conn("", "resource", "r", "api_version", "preview"), "speech", "tts", "POST https://r.openai.azure.com/openai/v1/audio/speech?api-version=preview"},
		{"base_of_the_resource", "azure", conn("https://r.cognitiveservices.azure.com/", "api_version", "2024-10-21"), "embeddings", "d", "POST https://r.cognitiveservices.azure.com/openai/deployments/d/embeddings?api-version=2024-10-21"},
		{"base_of_a_gateway", "azure", conn("https://apim.example.com/team/openai"), "chat", "d", "POST https://apim.example.com/team/openai/v1/chat/completions"},
		{"strange_version", "azure", conn("", "resource", "r", "api_version", "1&x=y"), "chat", "d", "incomplete"},
		{"one_segment_model", "gemini", conn(""), "embeddings", "a/b:c", "POST https://generativelanguage.googleapis.com/v1beta/models/a%2Fb%3Ac:embedContent"},
		{"model_keeps_slashes", "cloudflare", conn("", "account_id", "a1"), "run", "@cf/baai/bge m3", "POST https://api.cloudflare.com/client/v4/accounts/a1/ai/run/@cf/baai/bge%20m3"},
		{"bedrock_colon", "bedrock", conn("", "region", "us-east-1"), "embeddings", "amazon.titan-embed-text-v2:0", "POST https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke"},
		{"vertex_region", "vertex", conn("", "location", "europe-west1", "project", "p"), "embeddings", "m", "POST https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/google/models/m:predict"},
		{"vertex_without_location", "vertex", conn("", "project", "p"), "chat", "m", "POST https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/m:generateContent"},
		{"vertex_express", "vertex", keyed("location", "eu"), "chatStream", "m", "POST https://aiplatform.googleapis.com/v1/publishers/google/models/m:streamGenerateContent?alt=sse"},
		{"vertex_express_has_googles_models_only", "vertex", keyed(), "messages", "claude", "no endpoint"},
		{"vertex_key_beside_a_project", "vertex", keyed("project", "p", "location", "us-central1"), "chat", "m", "POST https://aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent"},
		{"vertex_key_and_other_publishers", "vertex", keyed(), "chat", "deepseek-ai/deepseek-v3.1-maas", "no endpoint"},
		{"vertex_behind_a_host", "vertex", conn("https://psc.example.com", "project", "p"), "messages", "claude", "POST https://psc.example.com/v1/projects/p/locations/global/publishers/anthropic/models/claude:rawPredict"},
		{"vertex_behind_a_base", "vertex", conn("https://gw.example.com/v1/projects/p/locations/eu/publishers/google", "project", "p"), "chat", "m", "POST https://gw.example.com/v1/projects/p/locations/eu/publishers/google/models/m:generateContent"},
		{"bedrock_private_link", "bedrock", conn("https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "region", "eu-west-1"), "chat", "a:0", "POST https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com/model/a%3A0/converse"},
		{"bedrock_private_link_has_no_list", "bedrock", conn("https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com", "region", "eu-west-1"), "models", "", "GET https://bedrock.eu-west-1.amazonaws.com/foundation-models"},
		{"bedrock_behind_a_proxy", "bedrock", conn("https://proxy.example.com/aws", "region", "eu-west-1"), "models", "", "GET https://proxy.example.com/aws/foundation-models"},
		{"vertex_without_project", "vertex", conn(""), "chat", "m", "incomplete"},
		{"vertex_global", "vertex", conn("", "location", "global", "project", "p"), "embeddings", "m", "POST https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/m:predict"},
		{"vertex_multi_region", "vertex", conn("", "location", "eu", "project", "p"), "embeddings", "m", "POST https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google/models/m:predict"},
		{"owner_and_name", "replicate", conn(""), "images", "bfl/flux", "POST https://api.replicate.com/v1/models/bfl/flux/predictions"},
		{"compatible", "openai-compatible-0123abcd", conn(" https://llm.example.com/v1/ "), "embeddings", "m", "POST https://llm.example.com/v1/embeddings"},
		{"compatible_messages_ending", "anthropic-compatible-0123abcd", conn("https://m.example.com/v1/messages"), "models", "", "GET https://m.example.com/v1/models"},
		{"compatible_messages", "anthropic-compatible-0123abcd", conn("https://m.example.com/v1"), "messages", "", "POST https://m.example.com/v1/messages"},
		{"azure_base_loses_one_ending", "azure", conn("https://gw.example.com/openai/openai/v1"), "chat", "d", "POST https://gw.example.com/openai/openai/v1/chat/completions"},
		{"azure_version_of_any_letter_and_digit", "azure", conn("", "resource", "r", "api_version", "a-z09"), "chat", "d", "POST https://r.openai.azure.com/openai/v1/chat/completions?api-version=a-z09"},
		{"bedrock_path_behind_a_proxy", "bedrock", conn("https://proxy.example.com/aws", "region", "eu-west-1"), "chat", "m", "POST https://proxy.example.com/aws/model/m/converse"},
		{"base_does_not_move_another_host", "jina-reader", conn("https://reader.example.com"), "search", "", "POST https://s.jina.ai/"},
		{"base_of_every_character", "openai-compatible-0123abcd", conn("http://az09.a-b_c:9/~!"), "chat", "m", "POST http://az09.a-b_c:9/~!/chat/completions"},
		{"base_of_ipv6", "openai-compatible-0123abcd", conn("http://[::1]:9"), "chat", "m", "POST http://[::1]:9/chat/completions"},
		{"longest_model", "gemini", conn(""), "chat", strings.Repeat("m", 256), "POST https://generativelanguage.googleapis.com/v1beta/models/" + strings.Repeat("m", 256) + ":generateContent"},

		{"azure_version_with_a_backquote", "azure", conn("", "resource", "r", "api_version", "`"), "chat", "d", "incomplete"},
		{"azure_version_with_a_brace", "azure", conn("", "resource", "r", "api_version", "{"), "chat", "d", "incomplete"},
		{"azure_version_with_a_slash", "azure", conn("", "resource", "r", "api_version", "/"), "chat", "d", "incomplete"},
		{"azure_version_with_a_colon", "azure", conn("", "resource", "r", "api_version", ":"), "chat", "d", "incomplete"},
		{"base_with_blank", "openai-compatible-0123abcd", conn("https://a.example.com/v 1"), "chat", "m", "incomplete"},
		{"base_with_delete", "openai-compatible-0123abcd", conn("https://a.example.com/v\x7f1"), "chat", "m", "incomplete"},
		{"base_with_high_byte", "openai-compatible-0123abcd", conn("https://a.example.com/é"), "chat", "m", "incomplete"},
		{"base_with_opening_brace", "openai-compatible-0123abcd", conn("https://a.example.com/{"), "chat", "m", "incomplete"},
		{"base_with_closing_brace", "openai-compatible-0123abcd", conn("https://a.example.com/}"), "chat", "m", "incomplete"},
		{"base_without_host", "openai-compatible-0123abcd", conn("https:///v1"), "chat", "m", "incomplete"},
		{"no_such_endpoint", "anthropic", conn(""), "embeddings", "m", "no endpoint"},
		{"missing_variable", "azure", conn(""), "embeddings", "m", "incomplete"},
		{"missing_base", "openai-compatible-0123abcd", conn("  "), "embeddings", "m", "incomplete"},
		{"host_from_region", "bedrock", conn("", "region", "x.local:8443#"), "embeddings", "m", "incomplete"},
		{"host_from_location", "vertex", conn("", "location", "evil.com/", "project", "p"), "embeddings", "m", "incomplete"},
		{"user_in_resource", "azure", conn("", "resource", "a@evil.com"), "embeddings", "m", "incomplete"},
		{"model_leaves_path", "cloudflare", conn("", "account_id", "a"), "run", "//evil.com/a", "incomplete"},
		{"model_dot_segments", "fal", conn(""), "images", "a/../../b", "incomplete"},
		{"model_encoded_dot_segments", "fal", conn(""), "images", "a/%2e%2e/b", "incomplete"},
		{"model_backslash", "gemini", conn(""), "embeddings", `..\..`, "incomplete"},
		{"account_leaves_path", "cloudflare", conn("", "account_id", ".."), "run", "m", "incomplete"},
		{"base_with_query", "openai-compatible-0123abcd", conn("https://a.example.com/v1?x="), "embeddings", "m", "incomplete"},
		{"base_with_user", "openai-compatible-0123abcd", conn("https://a@b.example.com/v1"), "embeddings", "m", "incomplete"},
		{"base_with_backslash", "openai-compatible-0123abcd", conn(`https://a.example.com\@b/v1`), "embeddings", "m", "incomplete"},
		{"base_with_dots", "openai-compatible-0123abcd", conn("https://a.example.com/%2e%2e/x"), "embeddings", "m", "incomplete"},
		{"base_of_other_scheme", "openai-compatible-0123abcd", conn("ftp://a.example.com/x"), "embeddings", "m", "incomplete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Lookup(tt.provider)
			method, url, err := d.Endpoint(tt.conn, tt.endpoint, tt.model)
			got := method + " " + url
			switch {
			case errors.Is(err, ErrNoEndpoint):
				got = "no endpoint"
			case errors.Is(err, ErrIncomplete):
				got = "incomplete"
			case err != nil:
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestIncompleteConnectionNamesTheMissingSetting(t *testing.T) {
	for _, tt := range []struct {
		provider string
		conn     *store.Connection
		want     string
	}{
		{"azure", conn(""), "resource is missing"},
		{"azure", conn("", "resource", "acme", "api_version", "1&x"), "api_version is not usable in an address"},
		{"bedrock", conn(""), "region is missing"},
	} {
		if _, _, err := Lookup(tt.provider).Endpoint(tt.conn, "chat", "m"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func TestEndpointStaysOnItsOrigin(t *testing.T) {
	nasty := []string{"//evil.com/a", "@evil.com", ":80@evil.com", "a#b", "a?b", `\\evil.com`, "%2f%2fevil.com", "a/b", "..", "", "x.local:8443#", "\u2028", "a\x00b", "é"}
	for _, d := range All() {
		for _, e := range d.Endpoints {
			for _, n := range nasty {
				c := conn("")
				for _, v := range d.Vars {
					c.Data.Vars[v] = "abc"
				}
				_, clean, err := d.Endpoint(c, e.Name, "model", Part{"id", "x", false}, Part{"request_id", "x", false}, Part{"voice_id", "x", false}, Part{"operation", "x", false})
				for _, v := range d.Vars {
					c.Data.Vars[v] = n
				}
				_, url, err2 := d.Endpoint(c, e.Name, n, Part{"id", n, false}, Part{"request_id", n, false}, Part{"voice_id", n, false}, Part{"operation", n, false})
				if err2 != nil || err != nil {
					continue
				}
				if len(d.Vars) == 0 && Origin(url) != Origin(clean) || strings.Contains(Origin(url), "evil") || strings.ContainsAny(Origin(url)[8:], "@#?\\/") {
					t.Fatalf("%s %s with %q: %s", d.ID, e.Name, n, url)
				}
			}
		}
	}
}

func TestCheckModel(t *testing.T) {
	for m, want := range map[string]bool{
		"org/model:tag@v1": true, "text-embedding-3-small": true, "@cf/baai/bge-m3": true, "a b": true, "modèle": true,
		"100%": true, "a%20b": true, strings.Repeat("a", 256): true, "...": true, "a..b": true,
		"": false, strings.Repeat("a", 257): false, "../../admin": false, "a/../b": false, "%2e%2e/x": false, "%2E./x": false,
		"x?key=1": false, "x#": false, "/x": false, "x/": false, "a//x": false, "a\x00": false, "a\x7f": false, `a\b`: false,
		"a%5cb": false, "a%2f..%2fb": false, "a%00": false, ".": false, "%3fx": false,
	} {
		if got := CheckModel(m) == nil; got != want {
			t.Errorf("%q: got %v, want %v", m, got, want)
		}
	}
}

func TestAuthorize(t *testing.T) {
	key, token := secret.New("k-123"), secret.New("t-456")
	tests := []struct {
		name     string
		provider string
		conn     *store.Connection
		cred     Credential
		want     string
		err      error
	}{
		{"bearer", "openai", conn(""), Credential{APIKey: key}, "authorization: Bearer k-123", nil},
		{"token_when_no_key", "openai", conn(""), Credential{AccessToken: token}, "authorization: Bearer t-456", nil},
		{"key_before_token", "openai", conn(""), Credential{APIKey: key, AccessToken: token}, "authorization: Bearer k-123", nil},
		{"organization", "openai", conn("", "organization", "org-1"), Credential{APIKey: key}, "openai-organization: org-1|authorization: Bearer k-123", nil},
		{"named", "anthropic", conn(""), Credential{APIKey: key}, "anthropic-version: 2023-06-01|x-api-key: k-123", nil},
		{"named_token", "anthropic", conn(""), Credential{AccessToken: token}, "anthropic-version: 2023-06-01|authorization: Bearer t-456", nil},
		{"formatted", "deepgram", conn(""), Credential{APIKey: key}, "authorization: Token k-123", nil},
		{"compatible_messages_sends_both", "anthropic-compatible-0123abcd", conn(""), Credential{APIKey: key}, "anthropic-version: 2023-06-01|x-api-key: k-123|authorization: Bearer k-123", nil},
		{"compatible_chat", "openai-compatible-0123abcd", conn(""), Credential{APIKey: key}, "authorization: Bearer k-123", nil},
		{"bedrock_key", "bedrock", conn(""), Credential{APIKey: key}, "authorization: Bearer k-123", nil},
		{"bedrock_signed", "bedrock", conn(""), Credential{APIKey: key, SecretAccessKey: token}, "", ErrMustSign},
		{"vertex_token", "vertex", conn(""), Credential{AccessToken: token}, "authorization: Bearer t-456", nil},
		{"vertex_key", "vertex", conn(""), Credential{APIKey: key}, "x-goog-api-key: k-123", nil},
		{"azure_token", "azure", conn(""), Credential{AccessToken: token}, "authorization: Bearer t-456", nil},
		{"local_without", "ollama", conn(""), Credential{}, "", nil},
		{"local_with", "ollama", conn(""), Credential{APIKey: key}, "authorization: Bearer k-123", nil},
		{"optional", "jina-reader", conn(""), Credential{}, "", nil},
		{"nothing_for_vertex", "vertex", conn(""), Credential{}, "", ErrNoCredential},
		{"nothing", "openai", conn(""), Credential{}, "", ErrNoCredential},
		{"nothing_named", "gemini", conn(""), Credential{}, "", ErrNoCredential},
		{"newline_in_key", "openai", conn(""), Credential{APIKey: secret.New("sk-a\r\nX: 1")}, "", ErrHeader},
		{"high_byte_in_key", "gemini", conn(""), Credential{APIKey: secret.New("sk-é")}, "", ErrHeader},
		{"newline_in_variable", "openai", conn("", "project", "a\nb"), Credential{APIKey: key}, "", ErrHeader},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h httpmsg.Header
			err := Authorize(&h, Lookup(tt.provider), tt.conn, tt.cred)
			if !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			var got []string
			for _, f := range h {
				got = append(got, f.Name+": "+f.Value)
			}
			if s := strings.Join(got, "|"); err == nil && s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestFurtherBase(t *testing.T) {
	deepseek, bedrock := Lookup("deepseek"), Lookup("bedrock")
	for _, tt := range []struct {
		d    *Descriptor
		conn *store.Connection
		name string
		want string
		err  error
	}{
		{deepseek, conn("https://other.example.com"), "messages", "POST https://api.deepseek.com/anthropic/v1/messages", nil},
		{deepseek, conn(""), "embeddings", " ", ErrNoEndpoint},
		{bedrock, conn("", "region", "eu-west-1"), "responses", "POST https://bedrock-mantle.eu-west-1.api.aws/v1/responses", nil},
		{bedrock, conn(""), "responses", " ", ErrIncomplete},
		{bedrock, nil, "responses", " ", ErrIncomplete},
	} {
		b := &tt.d.Alt[0]
		method, url, err := tt.d.EndpointOf(b, tt.conn, tt.name, "m")
		if got := method + " " + url; got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s %s: got %s, %v, want %s, %v", tt.d.ID, tt.name, got, err, tt.want, tt.err)
		}
	}
}

func TestAuthorizeOfUsesSchemeOfBase(t *testing.T) {
	deepseek := Lookup("deepseek")
	for _, tt := range []struct {
		base        *Base
		name, value string
	}{{nil, "authorization", "Bearer k-123"}, {&deepseek.Alt[0], "x-api-key", "k-123"}} {
		var h httpmsg.Header
		err := AuthorizeOf(&h, deepseek, tt.base, conn(""), Credential{APIKey: secret.New("k-123")})
		if err != nil || len(h) != 1 || h[0].Name != tt.name || h[0].Value != tt.value {
			t.Errorf("got %v, %v, want %s", h, err, tt.name)
		}
	}
}

func TestOwnBase(t *testing.T) {
	for _, tt := range []struct {
		provider string
		conn     *store.Connection
		want     string
		err      error
	}{
		{"ollama", conn("http://10.0.0.5:11434/v1/"), "http://10.0.0.5:11434/v1", nil},
		{"openai", conn("https://llm.example.com/v1"), "https://llm.example.com/v1", nil},
		{"openai", conn(""), "https://api.openai.com/v1", nil},
		{"openai", nil, "https://api.openai.com/v1", nil},
		{"mistral", conn("https://llm.example.com/v1"), "https://api.mistral.ai/v1", nil},
		{"vertex", conn(""), "https://aiplatform.googleapis.com", nil},
		{"vertex", conn("", "location", "Europe-West1"), "https://europe-west1-aiplatform.googleapis.com", nil},
		{"bedrock", conn("", "region", "EU-west-1"), "https://bedrock-runtime.eu-west-1.amazonaws.com", nil},
		{"bedrock", conn(""), "", ErrIncomplete},
		{"openai-compatible-0123abcd", conn("https://llm.example.com/v1"), "https://llm.example.com/v1", nil},
		{"openai-compatible-0123abcd", nil, "", ErrIncomplete},
	} {
		got, err := Lookup(tt.provider).OwnBase(tt.conn)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %q, %v, want %q, %v", tt.provider, got, err, tt.want, tt.err)
		}
	}
}

func TestPartsOfURL(t *testing.T) {
	long := strings.Repeat("v", maxAny)
	for _, tt := range []struct {
		provider, endpoint string
		part               Part
		want               string // "" for ErrIncomplete
	}{
		{"gemini", "videoStatus", Part{"operation", "models/x/operations/y", false}, "https://generativelanguage.googleapis.com/v1beta/models/x/operations/y"},
		{"luma", "videoStatus", Part{"id", "a/b", false}, "https://api.lumalabs.ai/dream-machine/v1/generations/a%2Fb"},
		{"luma", "videoStatus", Part{"id", "a?b", true}, "https://api.lumalabs.ai/dream-machine/v1/generations/a%3Fb"},
		{"luma", "videoStatus", Part{"id", long, true}, "https://api.lumalabs.ai/dream-machine/v1/generations/" + long},
		{"luma", "videoStatus", Part{"id", long + "v", true}, ""},
		{"luma", "videoStatus", Part{"id", "a?b", false}, ""},
		{"luma", "videoStatus", Part{"id", ".", true}, ""},
		{"luma", "videoStatus", Part{"id", "..", true}, ""},
		{"luma", "videoStatus", Part{"id", "", true}, ""},
		{"luma", "videoStatus", Part{"other", "a", true}, ""},
	} {
		_, url, err := Lookup(tt.provider).Endpoint(conn(""), tt.endpoint, "", Part{"first", "1", false}, tt.part)
		if url != tt.want || errors.Is(err, ErrIncomplete) != (tt.want == "") {
			t.Errorf("%s of %.20q: got %q, %v, want %q", tt.part.Name, tt.part.Value, url, err, tt.want)
		}
	}
	// Only the part of that name permits any characters.
	_, url, err := Lookup("luma").Endpoint(conn(""), "videoStatus", "", Part{"other", "1", true}, Part{"id", "a?b", false})
	if !errors.Is(err, ErrIncomplete) {
		t.Errorf("got %q, %v", url, err)
	}
	d := Descriptor{BaseURL: "https://a.example", Endpoints: []Endpoint{{Name: "chat", Path: "/{model"}}}
	if _, url, err := d.Endpoint(conn(""), "chat", "m"); !errors.Is(err, ErrNoEndpoint) {
		t.Errorf("an unclosed brace: got %q, %v", url, err)
	}
}

func TestExpress(t *testing.T) {
	token := keyed()
	token.Secrets[store.AccessToken] = "sealed"
	for name, tt := range map[string]struct {
		provider string
		conn     *store.Connection
		want     bool
	}{
		"key":              {"vertex", keyed(), true},
		"other_provider":   {"gemini", keyed(), false},
		"no_connection":    {"vertex", nil, false},
		"no_key":           {"vertex", conn(""), false},
		"key_and_project":  {"vertex", keyed("project", "p"), true},
		"key_beside_token": {"vertex", token, false},
	} {
		if got := Lookup(tt.provider).Express(tt.conn); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
