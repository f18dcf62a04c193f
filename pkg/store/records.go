// Package store has the records of a machine, the key-value interface they
// are replicated through, and the sealing of secrets.
package store

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"slices"
	"strings"

	"weir/pkg/wire/secret"
)

// Names of the secrets that a connection may hold. They are the JSON names of
// the fields that set them; no answer contains them.
const (
	APIKey          = "apiKey"
	AccessToken     = "accessToken"
	RefreshToken    = "refreshToken"
	AccessKeyID     = "accessKeyId"     // AWS
	SecretAccessKey = "secretAccessKey" // AWS
	SessionToken    = "sessionToken"    // AWS
	ServiceAccount  = "serviceAccount"  // Google, the whole JSON key file
	ClientSecret    = "clientSecret"    // OAuth
	ProxyAuth       = "proxyAuth"       // user:password of a CONNECT proxy
)

// Connection is one stored upstream credential. See docs/reference/spec.md,
// 2.3.
//
//easyjson:json
type Connection struct {
	ID         string                   `json:"id"`
	Provider   string                   `json:"provider"`
	Name       string                   `json:"name,omitempty"`
	AuthType   string                   `json:"authType,omitempty"` // apikey, oauth, service_account, aws
	Secrets    map[string]secret.Sealed `json:"secrets,omitempty"`
	ExpiresAt  int64                    `json:"expiresAt,omitempty"` // of the access token, Unix milliseconds
	Priority   int                      `json:"priority"`            // lower is tried first
	Weight     int                      `json:"weight,omitempty"`    // for Weighted; 0 is DefaultWeight
	Inactive   bool                     `json:"inactive,omitempty"`  // isActive was exactly false
	Data       ProviderData             `json:"providerSpecificData"`
	CreatedAt  int64                    `json:"createdAt"` // Unix milliseconds
	UpdatedAt  int64                    `json:"updatedAt"`
	Generation int64                    `json:"generation"` // of this row; moves with every change
	// TokenGeneration moves with every refresh of the access token.
	TokenGeneration int64  `json:"tokenGeneration,omitempty"`
	Status          string `json:"status,omitempty"` // "", needs_reauth, needs_credential
	LastError       string `json:"lastError,omitempty"`
}

// HasCredential reports whether there is a secret for the provider among them.
func HasCredential(secrets map[string]secret.Sealed) bool {
	if secrets[ProxyAuth] != "" {
		return len(secrets) > 1
	}
	return len(secrets) > 0
}

// ProviderData is providerSpecificData: the fields that the gateway reads, and
// all others as they were given.
type ProviderData struct {
	BaseURL       string   `json:"baseUrl,omitempty"`
	Prefix        string   `json:"prefix,omitempty"`
	EnabledModels []string `json:"enabledModels,omitempty"`
	// StreamUsage reports whether the server's chat accepts stream_options; nil is
	// what the provider's row says.
	StreamUsage *bool `json:"streamUsage,omitempty"`
	// Proxy is the "host:port" of the HTTP CONNECT proxy that tokens are
	// refreshed through; its user and password are the secret ProxyAuth.
	Proxy string `json:"proxy,omitempty"`
	// Vars are the provider's own variables: region, project, location,
	// resource, account_id, organization, …
	Vars map[string]string `json:"vars,omitempty"`
	// Other holds fields that weir does not read, by name.
	Other map[string]json.RawMessage `json:"other,omitempty"`
}

// Key is a gateway key. The key itself is never stored.
//
//easyjson:json
type Key struct {
	ID       string   `json:"id"`     // the keyId part, or a digest prefix for a two-part key
	Digest   string   `json:"digest"` // SHA-256 of the whole key, lower-case hex
	Name     string   `json:"name,omitempty"`
	Scopes   []string `json:"scopes,omitempty"` // data, manage; none means data
	Last4    string   `json:"last4,omitempty"`
	Models   []string `json:"models,omitempty"`   // allow-list of public ids, "*" at the end matches the rest; none means all
	RPM      int      `json:"rpm,omitempty"`      // requests a minute; 0 is no limit
	DailyMax int      `json:"dailyMax,omitempty"` // requests a UTC day; 0 is no limit
	TPM      int      `json:"tpm,omitempty"`      // tokens a minute; 0 is no limit
	// MaxParallel is the number of calls under way at a time; 0 is no limit.
	MaxParallel int   `json:"maxParallel,omitempty"`
	CreatedAt   int64 `json:"createdAt,omitempty"` // Unix milliseconds
	ExpiresAt   int64 `json:"expiresAt,omitempty"` // Unix milliseconds; 0 is never
	RevokedAt   int64 `json:"revokedAt,omitempty"`
	PausedAt    int64 `json:"pausedAt,omitempty"`
	// Person is the id of the person who has the key; "" for one of the machine.
	Person string `json:"person,omitempty"`
	// Tags are added to each of its calls, which cannot give their names another value.
	Tags []string `json:"tags,omitempty"`
	// CapturePercent and CaptureHours go before those of the settings; nil and 0 are
	// the settings'.
	CapturePercent *int `json:"capturePercent,omitempty"`
	CaptureHours   int  `json:"captureHours,omitempty"`
	// Earlier is the text that the last rotation has replaced.
	Earlier    *EarlierKey `json:"earlier,omitempty"`
	Generation int64       `json:"generation"`
}

// EarlierKey is a text of a key that is valid until a time, besides the current one.
type EarlierKey struct {
	Digest string `json:"digest"`
	Last4  string `json:"last4,omitempty"`
	Until  int64  `json:"until"` // Unix milliseconds
}

// Accepts reports whether a digest is that of a text of the key that is valid now.
func (k *Key) Accepts(digest string, now int64) bool {
	same := func(own string) bool { return subtle.ConstantTimeCompare([]byte(own), []byte(digest)) == 1 }
	return same(k.Digest) || k.Earlier != nil && k.Earlier.Until > now && same(k.Earlier.Digest)
}

// Combo is a named group of models. See docs/reference/spec.md, 2.4.
//
//easyjson:json
type Combo struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Kind     string   `json:"kind,omitempty"`
	Models   []string `json:"models"`
	Strategy string   `json:"strategy,omitempty"` // see Priority; "" is Fallback
	// Weights are those of members, for Weighted; others have DefaultWeight.
	Weights map[string]int `json:"weights,omitempty"`
	// SplitBy is what Weighted keeps together: SplitBySession, which is also "", or
	// SplitByKey.
	SplitBy string `json:"splitBy,omitempty"`
	// On states for classes of failures of a member whether the next one is tried:
	// "next" or "stop". See routing.Classes for the names and what holds by default.
	On         map[string]string `json:"on,omitempty"`
	CreatedAt  int64             `json:"createdAt"`
	UpdatedAt  int64             `json:"updatedAt"`
	Generation int64             `json:"generation"`
}

// CustomModel is a model that a user added. See docs/reference/spec.md, 2.5.
//
//easyjson:json
type CustomModel struct {
	ID            string `json:"id"`
	Type          string `json:"type,omitempty"`
	ProviderAlias string `json:"providerAlias"`
	Name          string `json:"name,omitempty"`
	ContextLength int    `json:"contextLength,omitempty"`
	MaxTokens     int    `json:"maxTokens,omitempty"`
}

// DisabledModels hides models under an alias or a provider id.
//
//easyjson:json
type DisabledModels struct {
	ProviderAlias string   `json:"providerAlias"`
	IDs           []string `json:"ids"`
}

// Refusal is a field or role that the server of a connection has refused by
// name. Until a time it gets an older form.
//
//easyjson:json
type Refusal struct {
	ConnectionID string `json:"connectionId"`
	Field        string `json:"field"`
	Until        int64  `json:"until"` // Unix milliseconds
}

// Settings are a machine's settings; a zero field means the default.
//
//easyjson:json
type Settings struct {
	Strategy         string `json:"strategy,omitempty"`           // see Priority, which is also ""
	FirstByteSeconds int    `json:"firstByteSeconds,omitempty"`   // see FirstEvent, FirstByte
	IdleSeconds      int    `json:"idleSeconds,omitempty"`        // see Idle
	EmbeddingInput   string `json:"embeddingInputType,omitempty"` // document, query
	ResponsesSocket  string `json:"responsesWebSocket,omitempty"` // on, off
	PromptCaching    string `json:"promptCaching,omitempty"`      // on, CachingAuto, off; see MarksCaches
	StreamCost       string `json:"streamCost,omitempty"`         // on, off; see StatesStreamCost
	StatusFeeds      string `json:"statusFeeds,omitempty"`        // on, off; see ReadsStatusFeeds
	PublicStatus     string `json:"publicStatus,omitempty"`       // StatusOfProviders, StatusOfModels; "" is off

	// The models that plain Claude names of a family stand for; see
	// ClaudeModel. Empty is Anthropic's own.
	ClaudeOpus   string `json:"claudeOpusModel,omitempty"`
	ClaudeSonnet string `json:"claudeSonnetModel,omitempty"`
	ClaudeHaiku  string `json:"claudeHaikuModel,omitempty"`
	ClaudeFable  string `json:"claudeFableModel,omitempty"`

	// TagsFrom are fields of bodies whose values are tags: user, safety_identifier,
	// metadata.NAME. The name of the tag is the last part.
	TagsFrom []string `json:"tagsFrom,omitempty"`

	// KeyNetworks is off if the networks that keys are used from are not stored.
	KeyNetworks string `json:"keyNetworks,omitempty"` // on, off

	// TimeZone is where days, weeks and months of budgets begin, such as
	// "Europe/Berlin"; "" is UTC.
	TimeZone string `json:"timeZone,omitempty"`

	// CapturePercent is the share of calls whose bodies are stored, for CaptureHours; see
	// CapturePercentOf.
	CapturePercent int `json:"capturePercent,omitempty"`
	CaptureHours   int `json:"captureHours,omitempty"`

	// MaxParallel is the number of calls under way at a time; 0 is no limit.
	MaxParallel int `json:"maxParallel,omitempty"`

	// TraceUpstream are the hosts of providers that get the trace context of calls, in
	// lower case, such as "vllm.example.com:8000".
	TraceUpstream []string `json:"traceUpstream,omitempty"`

	// DefaultModel and SmallModel are written into the configuration of tools that are
	// set up; the small one is for their background work. They do not affect calls.
	DefaultModel string `json:"defaultModel,omitempty"`
	SmallModel   string `json:"smallModel,omitempty"`

	// ModelPrices are prices of the machine's own by public id, "<alias>/<model>", as
	// in catalog.Price. They go before those of the catalogue and of the vendor's
	// answers.
	ModelPrices map[string]string `json:"modelPrices,omitempty"`
}

// MarksCaches reports whether the ends of cached prefixes are marked for clients of
// dialects without marks.
func (s *Settings) MarksCaches() bool {
	return s.PromptCaching == "on" || s.PromptCaching == CachingAuto
}

// CachingAuto marks the ends of cached prefixes where a session is likely to repeat. New
// machines have it.
const CachingAuto = "auto"

// StatesStreamCost reports whether a stream ends with a comment that states its cost.
func (s *Settings) StatesStreamCost() bool { return s.StreamCost == "on" }

// Values of PublicStatus: the public status page of a machine shows its providers or models.
const (
	StatusOfProviders = "providers"
	StatusOfModels    = "models"
)

// ReadsStatusFeeds reports whether the public status pages of the machine's providers are
// read when the dashboard shows them.
func (s *Settings) ReadsStatusFeeds() bool { return s.StatusFeeds != "off" }

// ClaudeModel returns the model that the settings name for a plain Claude name,
// such as "claude-haiku-4-5", "claude-3-5-haiku-20241022" or "haiku", or "".
// Claude Code calls such names for its background work whatever model a user
// has chosen.
func (s *Settings) ClaudeModel(name string) string {
	if s.ClaudeOpus == "" && s.ClaudeSonnet == "" && s.ClaudeHaiku == "" && s.ClaudeFable == "" {
		return ""
	}
	for _, family := range [...]struct{ name, model string }{
		{"opus", s.ClaudeOpus}, {"sonnet", s.ClaudeSonnet}, {"haiku", s.ClaudeHaiku}, {"fable", s.ClaudeFable},
	} {
		if name == family.name || strings.HasPrefix(name, "claude-") &&
			slices.Contains(strings.Split(name, "-"), family.name) {
			return family.model
		}
	}
	return ""
}

// Machine is everything the data plane needs of one tenant. The replica in KV has
// its configuration only.
//
//easyjson:json
type Machine struct {
	Version      int               `json:"v"` // of this format: 1
	ID           string            `json:"machineId"`
	Generation   int64             `json:"generation"`  // moves with every change of the configuration
	PublishedAt  int64             `json:"publishedAt"` // Unix milliseconds
	Connections  []Connection      `json:"connections"`
	Keys         []Key             `json:"keys"`
	Combos       []Combo           `json:"combos,omitempty"`
	CustomModels []CustomModel     `json:"customModels,omitempty"`
	ModelAliases map[string]string `json:"modelAliases,omitempty"`
	Disabled     []DisabledModels  `json:"disabledModels,omitempty"`
	Settings     Settings          `json:"settings"`
	Budgets      []Budget          `json:"budgets,omitempty"`

	// The state that calls have shown. Observed moves with every change of it.
	Observed  int64      `json:"observed,omitempty"`
	Cooldowns []Cooldown `json:"cooldowns,omitempty"`
	Refusals  []Refusal  `json:"refusals,omitempty"`
	Quotas    []Quota    `json:"quotas,omitempty"`
}

// KV is the platform's key-value store: eventually consistent, at most one
// write per second and key. Get returns nil without an error if there is no
// value.
type KV interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
}
