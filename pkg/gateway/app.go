package gateway

import (
	"context"
	"io"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/auth/session"
	"weir/pkg/credentials/proxydial"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/endpoint/memory"
	"weir/pkg/llm/proxy"
	"weir/pkg/machine"
	"weir/pkg/machine/rpc"
	machinestorage "weir/pkg/machine/storage"
	"weir/pkg/machine/tokens"
	"weir/pkg/routing"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/chat"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/images"
	"weir/pkg/v1/messages"
	"weir/pkg/v1/models"
	"weir/pkg/v1/moderations"
	"weir/pkg/v1/rerank"
	"weir/pkg/v1/responses"
	"weir/pkg/v1/search"
	"weir/pkg/v1/videos"
	"weir/pkg/v1/web"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Config is what the operator sets. The three secrets have at least 32 bytes.
type Config struct {
	AdminToken     string // ADMIN_TOKEN
	KeySecret      string // API_KEY_SECRET
	CredentialsKey string // CREDENTIALS_KEY; two, separated by a comma, while one replaces the other
	RequireKey     bool   // REQUIRE_API_KEY, on unless "false"
	AllowPrivate   bool   // ALLOW_PRIVATE_UPSTREAMS
	Reseed         bool   // ALLOW_RESEED
	OAuthProviders string // OAUTH_PROVIDERS, the JSON of oauth.ParseProviders
	PublicURL      string // PUBLIC_URL, scheme and host that the gateway is reached at
	ProxyURL       string // PROXY_URL; http://user:password@host:port, for token refresh; "" for none
	Quiet          bool   // LOG_LEVEL of warn or error: no line for a success
}

// Ports are what the platform fills.
type Ports struct {
	Do           upstream.Doer
	Dialer       proxydial.Dialer // may be nil: calls through a proxy then fail
	Pause        upstream.Pauser
	Objects      rpc.Stub
	KV           store.KV
	CanonicalURL func(raw string) (string, bool)
	Normalize    func(text string) string                              // NFKC
	Decode       func(label string, raw []byte) (text string, ok bool) // of an encoding by its WHATWG label
	SignRS256    func(ctx context.Context, pkcs8, data []byte) ([]byte, error)
	DeriveKey    func(ctx context.Context, passphrase, salt []byte, iterations int) ([]byte, error) // PBKDF2 with SHA-256; nil does it in Go
	Now          func() time.Time
	Rand         io.Reader
	Log          func(level int, line string)
}

// App is the whole program behind a platform: the gateway and the logic of the
// objects.
type App struct {
	*Gateway
	object *machine.Object
}

const minSecret = 32 // bytes

// missing names the secrets that are not fit for use.
func (c *Config) missing() string {
	var names []string
	for _, s := range []struct{ name, value string }{
		{"ADMIN_TOKEN", c.AdminToken}, {"API_KEY_SECRET", c.KeySecret}, {"CREDENTIALS_KEY", c.CredentialsKey},
	} {
		if len(strings.TrimSpace(s.value)) < minSecret {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// New builds the program.
func New(cfg Config, p Ports) *App {
	g := &Gateway{Now: p.Now, Log: p.Log, Quiet: cfg.Quiet}
	// The operator's own secrets never reach a log; a tenant's are taken out
	// where they are in use, and by their looks here.
	clients, errClients := cfg.clients()
	public, errPublic := cfg.publicURL()
	hidden := []string{cfg.AdminToken, cfg.KeySecret, cfg.CredentialsKey}
	for i := range clients {
		hidden = append(hidden, clients[i].ClientSecret.Reveal(), clients[i].ProxyAuth.Reveal())
	}
	tokenProxy, errProxy := cfg.proxy(p.CanonicalURL)
	own := redact.New(append(hidden, tokenProxy.Auth.Reveal())...)
	g.Redact = func(s string) string { return redact.Patterns(own.String(s)) }
	app := &App{Gateway: g}
	missing := cfg.missing()
	var keys *store.Keyring
	if missing == "" {
		var err error
		if keys, err = store.NewKeyring(cfg.CredentialsKey); err != nil {
			missing = "CREDENTIALS_KEY"
		}
	}
	// Without the proxy that the operator named, no call is made at all.
	switch {
	case missing != "":
	case errProxy != nil:
		missing = "PROXY_URL"
	case errClients != nil && strings.Contains(cfg.OAuthProviders, `"proxy"`):
		missing = "OAUTH_PROVIDERS"
	}
	if missing != "" {
		g.Misconfigured = missing
		g.SetRoutes([]Route{health})
		return app
	}
	logLine := func(line string) { p.Log(1, g.Redact(line)) }
	for _, err := range []error{errClients, errPublic} {
		if err != nil { // what it is for does not work; the rest is served
			p.Log(2, "misconfigured: "+err.Error())
		}
	}
	app.object = &machine.Object{KV: p.KV, Manager: api.Manager{
		Service: tokens.Service{
			Keyring: keys, Objects: p.Objects, Do: p.Do, Pause: p.Pause, Now: p.Now, Rand: p.Rand, Log: logLine,
			SignRS256: p.SignRS256, OAuth: clients, Dialer: p.Dialer, Proxy: tokenProxy,
		},
		CanonicalURL: p.CanonicalURL, AllowPrivate: cfg.AllowPrivate, OwnHosts: cfg.ownHosts(), KeySecret: []byte(cfg.KeySecret),
		Reseed: cfg.Reseed, DeriveKey: p.DeriveKey,
	}}
	cache := &snapshot.Cache{KV: p.KV, Object: p.Objects, Now: p.Now, Log: logLine}
	pool := &accounts.Pool{Doer: p.Do, Object: p.Objects, Keys: keys, Now: p.Now, Pause: p.Pause}
	keyAuth := &auth.Authenticator{
		KeySecret: []byte(cfg.KeySecret), AdminToken: auth.Digest(cfg.AdminToken), RequireKey: cfg.RequireKey,
		Machines: cache, Now: p.Now, Count: pool.Count,
	}
	sessions := &session.Sessions{
		Credentials: keyAuth, Objects: p.Objects, Rand: p.Rand, Now: p.Now, KeySecret: []byte(cfg.KeySecret), AdminToken: keyAuth.AdminToken,
	}
	g.Auth = sessions.Wrap()
	g.After = func(ctx context.Context, c *auth.Call, status int, e *apierr.Error) {
		pool.Record(c.Machine, c.Request, status, e)
		pool.Flush(ctx, c.Machine)
		cache.Revalidate(ctx, c.MachineID)
	}
	credentials := &accounts.Credentials{Pool: pool}
	lists := &models.Handler{Live: &models.Lives{Do: p.Do, Credentials: credentials, Now: p.Now}, Now: p.Now}
	room := &memory.Budget{Pause: p.Pause}
	memory := &memory.Budget{Pause: p.Pause, Max: maxBodies}
	g.Room = memory
	downloads := &download.Downloads{Do: p.Do, CanonicalURL: p.CanonicalURL, AllowPrivate: cfg.AllowPrivate, OwnHosts: cfg.ownHosts()}
	embed := func(s accounts.Sender) *embeddings.Handler {
		return &embeddings.Handler{Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel}
	}
	find := func(s accounts.Sender) *search.Handler {
		return &search.Handler{Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel, Normalize: p.Normalize, Usage: pool, Now: p.Now}
	}
	order := func(s accounts.Sender) *rerank.Handler {
		return &rerank.Handler{Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel, Usage: pool}
	}
	moderate := func(s accounts.Sender) *moderations.Handler {
		return &moderations.Handler{Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel, Usage: pool}
	}
	pages := func(s accounts.Sender, do upstream.Doer) *web.Handler {
		return &web.Handler{
			Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel, Do: do,
			CanonicalURL: p.CanonicalURL, AllowPrivate: cfg.AllowPrivate, OwnHosts: cfg.ownHosts(), Decode: p.Decode, Usage: pool, Now: p.Now,
		}
	}
	talk := func(s accounts.Sender) *proxy.Dialog {
		return &proxy.Dialog{Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel, Usage: pool, Now: p.Now, Pause: p.Pause}
	}
	sound := func(s accounts.Sender) *audio.Handler {
		return &audio.Handler{Router: routing.Router{}, Accounts: s, Allows: auth.AllowsModel, Room: room, Pause: p.Pause, Downloads: downloads, Now: p.Now}
	}
	pictures := func(s accounts.Sender) *images.Handler {
		return &images.Handler{Router: routing.Router{}, Accounts: s, Once: &endpoint.Once{Object: p.Objects}, Allows: auth.AllowsModel, Room: room, Memory: memory, Pause: p.Pause, Downloads: downloads, Now: p.Now}
	}
	films := func(s accounts.Sender) *videos.Handler {
		return &videos.Handler{Router: routing.Router{}, Accounts: s, Object: p.Objects, Allows: auth.AllowsModel, Downloads: downloads, Credentials: credentials, Room: room}
	}
	talks := talk(pool)
	manager := &api.Handler{Objects: p.Objects, Cache: cache, KeySecret: []byte(cfg.KeySecret)}
	g.SetRoutes(withFeatures(routes(&handlers{
		sessions:       sessions,
		oauth:          &api.OAuth{Handler: manager, Clients: clients, PublicURL: public, Rand: p.Rand},
		embeddings:     embed(pool),
		models:         lists,
		chat:           &chat.Handler{Dialog: talks},
		messages:       &messages.Handler{Dialog: talks},
		responses:      &responses.Handler{Dialog: talks, Object: p.Objects},
		audio:          sound(pool),
		images:         pictures(pool),
		videos:         films(pool),
		search:         find(pool),
		web:            pages(pool, p.Do),
		rerank:         order(pool),
		moderations:    moderate(pool),
		manage:         manager,
		modelLists:     &api.ModelLists{Models: lists, Cache: cache},
		providerModels: &api.ProviderModels{Models: lists, Cache: cache},
		connectivity:   &api.Connectivity{Objects: p.Objects, Models: lists, Chat: (&chat.Handler{Dialog: talks}).Complete, Embeddings: embed(pool).Create, Search: find(pool).Create, Now: p.Now},
		explain: &api.Explainer{Cache: cache, Now: p.Now, Endpoint: func(path string, s accounts.Sender) api.Endpoint {
			switch path {
			case "/v1/embeddings":
				return embed(s).Create
			case "/v1/chat/completions":
				return (&chat.Handler{Dialog: talk(s)}).Complete
			case "/v1/messages":
				return (&messages.Handler{Dialog: talk(s)}).Create
			case "/v1/responses":
				return (&responses.Handler{Dialog: talk(s), Object: p.Objects}).Create
			case "/v1/messages/count_tokens":
				return (&messages.Handler{Dialog: talk(s)}).CountTokens
			case "/v1/audio/speech":
				return sound(s).Speech
			case "/v1/images/generations":
				return pictures(s).Generations
			case "/v1/videos/generations":
				return films(s).Generations
			case "/v1/search":
				return find(s).Create
			case "/v1/web/fetch":
				return pages(s, nil).Fetch
			case "/v1/rerank":
				return order(s).Create
			case "/v1/moderations":
				return moderate(s).Create
			}
			return nil
		}},
	})))
	return app
}

// Machine is the logic of the objects, for a platform that runs them itself.
func (a *App) Machine() *machine.Object { return a.object }

// Object serves a call of a machine's object.
func (a *App) Object(ctx context.Context, st machinestorage.Storage, machineID, op string, body []byte) (int, []byte) {
	if a.object == nil {
		return 503, nil
	}
	return a.object.Handle(ctx, st, machineID, op, body)
}

// Alarm serves the alarm of a machine's object.
func (a *App) Alarm(ctx context.Context, st machinestorage.Storage, machineID string) {
	if a.object != nil {
		a.object.Alarm(ctx, st, machineID)
	}
}

// Cron serves the scheduled trigger.
func (a *App) Cron(ctx context.Context, _ string) {
	if a.object != nil {
		a.object.Cron(ctx)
	}
}

// serveHealth answers whether the program runs; it says nothing else.
func serveHealth(context.Context, *auth.Call) (*httpmsg.Response, error) {
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromString(`{"status":"ok"}`),
	}, nil
}
