package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"weir/pkg/accounts"
	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/auth/oidc"
	"weir/pkg/auth/session"
	"weir/pkg/catalog"
	"weir/pkg/catalog/refresh"
	"weir/pkg/credentials/oauth"
	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/llm"
	"weir/pkg/llm/proxy"
	"weir/pkg/machine"
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/tokens"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/v1/audio"
	"weir/pkg/v1/embeddings"
	"weir/pkg/v1/images"
	"weir/pkg/v1/messages"
	"weir/pkg/v1/models"
	"weir/pkg/v1/moderations"
	"weir/pkg/v1/realtime"
	"weir/pkg/v1/rerank"
	"weir/pkg/v1/responses"
	"weir/pkg/v1/search"
	"weir/pkg/v1/usage"
	"weir/pkg/v1/videos"
	"weir/pkg/v1/web"
	"weir/pkg/v1beta"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/metrics"
	"weir/pkg/wire/redact"
	"weir/pkg/wire/upstream"
)

// wiring holds what the parts of the program share while New connects them.
type wiring struct {
	Config
	Ports

	serve   func(ctx context.Context, r *httpmsg.Request) *httpmsg.Response // of the gateway
	clients []oauth.Provider
	badRows map[string]string // of OAUTH_PROVIDERS, see Config.clients
	public  string            // PUBLIC_URL
	proxy   tokens.Proxy
	otel    *deliver.Opened // the collector for all machines, or nil
	prices  *refresh.Source // nil: prices are not refreshed
	redact  func(string) string
	keys    *store.Keyring
	callers *auth.Authenticator

	cache       *snapshot.Cache
	pool        *accounts.Pool
	credentials *accounts.Credentials
	models      *models.Handler
	downloads   *download.Downloads
	chatOnly    *proxy.ChatOnly // servers without a Responses endpoint
	sockets     *responses.Sockets
	memory      *memory.Budget
	process     func() []metrics.Family // nil on the edge
}

// configErrors are the errors of the optional settings.
type configErrors struct {
	clients                            []error
	public, proxy, prices, level, otel error
}

// read parses the settings. The operator's own secrets never reach a log; those
// of tenants are removed where they are used, and by their form here.
func (w *wiring) read() (errs configErrors) {
	w.clients, w.badRows, errs.clients = w.Config.clients()
	w.public, errs.public = w.publicURL()
	w.proxy, errs.proxy = w.Config.proxy()
	w.prices, errs.prices = w.Config.prices()
	errs.level = w.level()
	w.otel, errs.otel = deliver.Environment(&w.OTel, deliver.Policy{AllowPrivate: w.AllowPrivate, OwnHosts: w.ownHosts()})
	hidden := []string{w.AdminToken, w.KeySecret, w.CredentialsKey, w.proxy.Auth.Reveal()}
	for i := range w.clients {
		hidden = append(hidden, w.clients[i].ClientSecret.Reveal(), w.clients[i].ProxyAuth.Reveal())
	}
	if w.otel != nil {
		pairs, _ := deliver.Pairs(w.otel.Value("headers"))
		for _, p := range pairs {
			hidden = append(hidden, p[1])
		}
	}
	own := redact.New(hidden...)
	w.redact = func(s string) string { return redact.Patterns(own.String(s)) }
	return errs
}

// unusable returns the names of the settings without which nothing is served,
// or "". If the proxy of the operator is invalid, no call is sent at all.
func (w *wiring) unusable(errs configErrors) string {
	if missing := w.missing(); missing != "" {
		return missing
	}
	var err error
	if w.keys, err = store.NewKeyring(w.CredentialsKey); err != nil {
		return "CREDENTIALS_KEY"
	}
	if errs.proxy != nil {
		return "PROXY_URL"
	}
	return ""
}

func (w *wiring) logLine(line string) { w.Log(1, w.redact(line)) }

// object returns the logic of the machines' objects.
func (w *wiring) object() *machine.Object {
	token := sha256.Sum256([]byte("weir operator token\n" + w.AdminToken))
	o := &machine.Object{KV: w.KV, MaxRequests: w.MaxRequests, Token: hex.EncodeToString(token[:8])}
	o.Manager = manage.Manager{
		Service: tokens.Service{
			Keyring: w.keys, Objects: w.Objects, Do: w.Do, Pause: w.Pause, Now: w.Now, Rand: w.Rand, Log: w.logLine,
			SignRS256: w.SignRS256, OAuth: w.clients, Unusable: w.badRows, Dialer: w.Dialer, Proxy: w.proxy,
		},
		AllowPrivate: w.AllowPrivate, OwnHosts: w.ownHosts(), KeySecret: []byte(w.KeySecret),
		ZoneOffset: w.ZoneOffset, PublicURL: w.public, Collector: w.otel,
		Reseed: w.Reseed, Began: w.Began, ConfigFile: w.ConfigFile,
	}
	if w.Replicas != nil {
		o.Seat, o.SeatAlive = w.Replicas.Own, w.Replicas.Alive
	}
	return o
}

// share creates what all endpoints use.
func (w *wiring) share() {
	w.cache = &snapshot.Cache{KV: w.KV, Object: w.Objects, Now: w.Now, Log: w.logLine, Changed: w.Changed,
		PriceSource: w.prices}
	if w.Replicas != nil {
		w.cache.Usable = w.Replicas.Usable
	}
	w.pool = &accounts.Pool{Doer: w.Do, Object: w.Objects, Keys: w.keys, Now: w.Now, Rand: w.Rand, Pause: w.Pause,
		Log: w.logLine, Changed: w.Changed, Confirm: w.cache.Confirm}
	if w.Replicas != nil {
		w.pool.Seat = w.Replicas.Own
	}
	if w.MaxRequests > 0 {
		w.pool.MaxRecords = rpc.MaxReportRequests
	}
	w.credentials = &accounts.Credentials{Pool: w.pool}
	w.models = &models.Handler{Live: &models.LiveLists{Do: w.Do, Credentials: w.credentials, Now: w.Now,
		AtOnce: w.ListsAtOnce}, Now: w.Now}
	w.chatOnly = &proxy.ChatOnly{}
	w.sockets = &responses.Sockets{Serve: w.serve, Pause: w.Pause, Now: w.Now}
	w.memory = &memory.Budget{Max: w.MaxMemory, Pause: w.Pause, Elsewhere: w.Memory, Collect: w.Collect}
	w.downloads = &download.Downloads{Do: w.Do, AllowPrivate: w.AllowPrivate, OwnHosts: w.ownHosts()}
}

// pricesState returns what was last taken of the source of prices.
func (w *wiring) pricesState(ctx context.Context) *catalog.Update {
	p, err := rpc.Prices(ctx, w.KV, w.Objects)
	if err != nil || !w.prices.Issued(&p) {
		p = catalog.Update{Source: w.prices.URL, Signed: w.prices.Key != nil}
	}
	p.Text, p.ModelText, p.LimitText = "", "", ""
	return &p
}

// checkDisk reports a disk that is nearly full to the machines.
func (w *wiring) checkDisk(ctx context.Context) {
	if w.Disk == nil {
		return
	}
	free, size := w.Disk()
	if size == 0 || free >= size/20 && free >= 1<<30 {
		return
	}
	n := rpc.Notice{Event: deliver.DiskFull, Title: "The disk of the server is nearly full",
		Text: "Less than 5 % or 1 GiB is free where the data directory is. When it is full, changes are refused and " +
			"usage is lost: remove other files, or move the data directory."}
	if _, err := rpc.Call[struct{}](ctx, w.Objects, rpc.RegistryID, "notice", n); err != nil {
		w.logLine("disk: the registry did not answer")
	}
}

// refreshPrices is part of the scheduled work.
func (w *wiring) refreshPrices(ctx context.Context) {
	if w.prices == nil {
		return
	}
	f := machine.Refresher{Source: *w.prices, Do: w.Do, KV: w.KV, Objects: w.Objects, Now: w.Now, Log: w.logLine}
	var lease memory.Lease
	w.memory.Start(&lease, "", 0)
	defer lease.Release()
	f.Refresh(ctx, &lease)
}

// sessions returns the sign-in of the dashboard, over the check of keys.
func (w *wiring) sessions() *session.Sessions {
	w.callers = &auth.Authenticator{
		KeySecret: []byte(w.KeySecret), AdminToken: auth.Digest(w.AdminToken), RequireKey: w.RequireKey,
		Machines: w.cache, Now: w.Now, Vault: w.keys,
	}
	return &session.Sessions{
		Credentials: w.callers, Objects: w.Objects, Rand: w.Rand, Now: w.Now, KeySecret: []byte(w.KeySecret),
		AdminToken: w.callers.AdminToken,
		SpendCode:  w.SpendCode,
	}
}

// Ended records a call of a machine. After any other request it sends the reports that no
// call of their machine may follow.
func (w *wiring) Ended(ctx context.Context, e *Ended) {
	c := e.Call
	if c.Machine == nil {
		w.pool.FlushLate(ctx, "")
		return
	}
	c.Trace.Captured = c.Capture.Ready()
	rec := w.pool.Record(e.At, c.Machine, c.Request, &c.Trace, e.Status, e.Err)
	w.pool.Flush(ctx, c.Machine)
	w.pool.FlushLate(ctx, c.MachineID)
	if c.Trace.Captured {
		w.storeCapture(ctx, c, rec)
	}
	w.cache.Revalidate(ctx, c.MachineID)
}

// endpoints returns the endpoints of the data plane over a sender. do fetches
// the pages of POST /v1/web/fetch.
func (w *wiring) endpoints(s accounts.Sender, do upstream.Doer) *handlers {
	chats := &proxy.Proxy{Accounts: s, Now: w.Now, Pause: w.Pause, ChatOnly: w.chatOnly}
	vectors := &embeddings.Handler{Accounts: s}
	return &handlers{
		models:     w.models,
		embeddings: vectors,
		chats:      chats,
		messages:   &messages.Handler{Proxy: chats},
		responses:  &responses.Handler{Proxy: chats, Object: w.Objects},
		sockets:    w.sockets,
		gemini:     &v1beta.Handler{Models: w.models, Embeddings: vectors, Chats: chats},

		audio: &audio.Handler{
			Accounts: s, Pause: w.Pause, Downloads: w.downloads, Now: w.Now,
		},
		images: &images.Handler{
			Accounts: s, Once: &endpoint.Once{Object: w.Objects},
			Pause: w.Pause, Downloads: w.downloads, Now: w.Now,
		},
		videos: &videos.Handler{
			Accounts: s, Object: w.Objects, Downloads: w.downloads, Credentials: w.credentials,
		},
		search: &search.Handler{Accounts: s, Now: w.Now},
		web: &web.Handler{
			Accounts: s, Do: do, AllowPrivate: w.AllowPrivate, OwnHosts: w.ownHosts(), Decode: w.Decode,
			Usage: w.pool, Now: w.Now,
		},
		rerank:      &rerank.Handler{Accounts: s},
		usage:       &usage.Handler{Objects: w.Objects},
		moderations: &moderations.Handler{Accounts: s},
		realtime:    &realtime.Handler{Accounts: s, Keys: w.callers, Reports: w.pool, Now: w.Now},
	}
}

// management returns the handlers of /api. h are the endpoints that connection
// tests call.
func (w *wiring) management(h *handlers, sessions *session.Sessions) *api.Handlers {
	objects := &api.Handler{Objects: w.Objects, Cache: w.cache, KeySecret: []byte(w.KeySecret), Version: w.Version,
		Newer: w.Newer, SendsPieces: w.MaxRequests > 0}
	if w.prices != nil {
		objects.Prices = w.pricesState
	}
	signIns := &api.OAuth{Handler: objects, Clients: w.clients, Unusable: w.badRows, PublicURL: w.public, Rand: w.Rand,
		AllowPrivate: w.AllowPrivate}
	signIn := &api.SignIn{OAuth: signIns, Sessions: sessions, Keys: w.keys, Flow: &oidc.Flow{
		Client:    &oidc.Client{Do: w.Do, Verify: w.Verify, Now: w.Now, AllowPrivate: w.AllowPrivate, OwnHosts: w.ownHosts()},
		KeySecret: []byte(w.KeySecret), Rand: w.Rand, Spend: api.Spend(w.Objects)}}
	sessions.Proxy = signIn.Proxied
	return &api.Handlers{
		Objects: objects, Sessions: sessions,
		Metrics:        &api.Scraper{Objects: w.Objects, Version: w.Version, Process: w.process},
		OAuth:          signIns,
		SignIn:         signIn,
		Status:         &api.Status{Objects: w.Objects, Cache: w.cache, Now: w.Now},
		Feeds:          &api.Feeds{Objects: w.Objects, Cache: w.cache, Do: w.Do, Now: w.Now},
		People:         &api.People{Handler: objects, PublicURL: w.public},
		Setup:          &api.Setup{Handler: objects, PublicURL: w.public},
		Device:         &api.Device{Handler: objects, PublicURL: w.public, Rand: w.Rand, From: sessions.From},
		ModelLists:     &api.ModelLists{Models: w.models, Cache: w.cache},
		ProviderModels: &api.ProviderModels{Models: w.models, Cache: w.cache},
		Connectivity: &api.Connectivity{
			Objects: w.Objects, Cache: w.cache, Models: w.models, Now: w.Now,
			Chat: h.chats.Handler(llm.Chat), Embeddings: h.embeddings.Create, Search: h.search.Create,
		},
		Explain: &api.Explainer{Objects: w.Objects, Cache: w.cache, Keys: w.keys, Now: w.Now,
			Endpoint: func(c *auth.Call, s accounts.Sender) endpoint.Handler {
				return explained(w.endpoints(s, nil), c)
			}},
	}
}
