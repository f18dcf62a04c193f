package provider

import (
	"slices"

	"weir/pkg/catalog"
	"weir/pkg/llm"
)

// tables lists every built-in provider, in the order models are listed. The rows
// follow the vendors' SDKs and documentation; testdata/providers.golden.json shows
// them with complete URLs. See docs/adding-a-provider.md.
var tables = [...][]Descriptor{vendors, hosts, regional, media, web}

// All returns every built-in provider in the order of the table. The rows must
// not be changed.
func All() []*Descriptor {
	list := make([]*Descriptor, 0, 64)
	for _, t := range &tables {
		for i := range t {
			list = append(list, &t[i])
		}
	}
	return list
}

// Lookup returns the provider with an id, or nil. The ids of the two compatible
// families, openai-compatible-<suffix> and anthropic-compatible-<suffix> (a
// dash or an underscore before eight or more hexadecimal characters,
// docs/reference/spec.md, 2.3), have a descriptor for that id.
func Lookup(id string) *Descriptor {
	for _, t := range &tables {
		for i := range t {
			if t[i].ID == id {
				return &t[i]
			}
		}
	}
	return compatible(id)
}

// ByAlias returns the built-in provider with a public alias, or nil.
func ByAlias(alias string) *Descriptor {
	for _, t := range &tables {
		for i := range t {
			if t[i].Alias == alias {
				return &t[i]
			}
		}
	}
	return nil
}

const (
	openAICompatible    = "openai-compatible"
	anthropicCompatible = "anthropic-compatible"
)

// openAILike and anthropicLike are what the members of the two compatible
// families have in common.
var (
	openAILike = Descriptor{
		Name: "OpenAI-compatible", Compatible: true,
		Auth: Auth{Optional: true}, // local servers ask for no key
		Kinds: []catalog.Kind{
			catalog.LLM, catalog.Embedding, catalog.Image, catalog.TTS, catalog.STT,
			catalog.ImageToText, catalog.Rerank,
		},
		Endpoints: []Endpoint{
			{Name: "chat", Path: "/chat/completions"},
			{Name: "responses", Path: "/responses"},
			{Name: "embeddings", Path: "/embeddings"},
			{Name: "models", Path: "/models", Method: "GET"},
			{Name: "images", Path: "/images/generations"},
			{Name: "imageEdits", Path: "/images/edits"},
			{Name: "imageVariations", Path: "/images/variations"},
			{Name: "speech", Path: "/audio/speech"},
			{Name: "transcriptions", Path: "/audio/transcriptions"},
			{Name: "translations", Path: "/audio/translations"},
			{Name: "videos", Path: "/videos/generations"}, // in xAI's shape
			{Name: "videoEdits", Path: "/videos/edits"},
			{Name: "videoExtensions", Path: "/videos/extensions"},
			{Name: "videoStatus", Path: "/videos/{request_id}", Method: "GET"},
			{Name: "rerank", Path: "/rerank"},
			{Name: "moderations", Path: "/moderations"},
			{Name: "realtime", Path: "/realtime?model={model}", Method: "GET"},
			{Name: "clientSecrets", Path: "/realtime/client_secrets"},
		},
		Models: List{Array: "data models results", ID: "id"},
	}
	anthropicLike = Descriptor{
		Name: "Anthropic-compatible", Dialect: llm.Messages, Compatible: true,
		Auth:   Auth{Scheme: KeyName, Header: "x-api-key", AlsoBearer: true, Optional: true}, // docs/reference/spec.md, 4.2.4
		Header: [][2]string{{"anthropic-version", "2023-06-01"}},                             // docs/reference/spec.md, 9
		Kinds:  []catalog.Kind{catalog.LLM, catalog.Embedding, catalog.ImageToText},
		Endpoints: []Endpoint{
			{Name: "messages", Path: "/messages"},
			{Name: "countTokens", Path: "/messages/count_tokens"},
			{Name: "embeddings", Path: "/embeddings"},
			{Name: "models", Path: "/models", Method: "GET"},
		},
		Models: List{Array: "data models results", ID: "id"},
	}
)

// compatible makes the descriptor of a member of the compatible families. Its
// alias is the id, for connections without a prefix.
func compatible(id string) *Descriptor {
	var d Descriptor
	switch {
	case isInstance(id, openAICompatible):
		d = openAILike
	case isInstance(id, anthropicCompatible):
		d = anthropicLike
	default:
		return nil
	}
	d.ID, d.Alias = id, id
	return &d
}

func isInstance(id, family string) bool {
	if len(id) < len(family)+9 || len(id) > 96 || id[:len(family)] != family {
		return false
	}
	if c := id[len(family)]; c != '-' && c != '_' {
		return false
	}
	for _, c := range []byte(id[len(family)+1:]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// Has reports whether the provider serves a kind. Without kinds it serves chat
// models (docs/reference/spec.md, 2.8).
func (d *Descriptor) Has(kind catalog.Kind) bool {
	return slices.Contains(d.Kinds, kind) || len(d.Kinds) == 0 && kind == catalog.LLM
}

// Serves reports whether the provider has an endpoint of that name.
func (d *Descriptor) Serves(name string) bool { return find(d.Endpoints, name) != nil }

func find(list []Endpoint, name string) *Endpoint {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
