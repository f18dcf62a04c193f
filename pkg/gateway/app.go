package gateway

import (
	"context"
	"io"
	"strings"
	"time"

	"weir/pkg/accounts"
	"weir/pkg/api"
	"weir/pkg/auth"
	"weir/pkg/auth/oidc"
	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	machinestorage "weir/pkg/machine/storage"
	"weir/pkg/snapshot"
	"weir/pkg/store"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/memory"
	"weir/pkg/wire/metrics"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Ports are what the platform fills.
type Ports struct {
	Do      upstream.Doer
	Dialer  proxydial.Dialer // may be nil: calls through a proxy then fail
	Pause   upstream.Pauser
	Objects rpc.Stub
	KV      store.KV // of replicas; nil where the objects are near
	// ZoneOffset returns how far a time zone is ahead of UTC; nil knows UTC alone. In Go it
	// takes 450 KB of each isolate, and 0.2 to 0.7 ms for a look-up instead of 0.02.
	ZoneOffset func(zone string, unixMilli int64) (seconds int, ok bool)
	// Decode decodes an encoding by its WHATWG label. In Go it takes 950 KB, 13 MiB of
	// memory in each isolate and 5 ms of each start (docs/reference/performance.md, 4).
	Decode    func(label string, raw []byte) (text string, ok bool)
	Brotli    func(r io.Reader) io.Reader // decodes a body; nil refuses those
	SignRS256 func(ctx context.Context, pkcs8, data []byte) ([]byte, error)
	Verify    oidc.Verify            // checks the signatures of identity providers; nil refuses all
	SpendCode func(code string) bool // of a sign-in link, see session.Sessions; nil if there are no links
	Now       func() time.Time
	Rand      io.Reader
	Log       func(level int, line string)
	// Memory returns how many bytes the program's memory has grown by, and how many
	// other instances have of the same limit; nil if the system takes memory back.
	Memory func() (grown, others int64)
	// MaxRequests is the number of the latest requests that a machine lists, and lists in
	// full unless there are very many at once; 0 is what fits the edge.
	MaxRequests int64
	// ListsAtOnce is how many model lists a request asks for at the same time, see
	// models.LiveLists; 0 is what fits the edge.
	ListsAtOnce int
	// Collect collects garbage before the memory of calls grows from used by n bytes, see
	// memory.Budget; may be nil.
	Collect func(used, n int64)
	// Began is when the process was started if no other one serves its machines, in Unix
	// milliseconds: who used their budgets before is dead. 0 where there are others.
	Began int64
	// Replicas are the processes that serve the machines; nil where that is not known, or if
	// this one is alone.
	Replicas *Replicas
	// Disk returns how many bytes of the disk with the data are free, and how many it has: 0 if
	// that is not known. nil where the platform has no disk.
	Disk func() (free, size int64)
	// Newer returns the version of a newer release, "" if none is known. nil where none is
	// looked for.
	Newer func() string
	// ConfigFile is that of manage.Manager.
	ConfigFile func(machineID string) *manage.ConfigFile
	// Managed returns the name of the configuration file that owns what a call to a path of a
	// machine would change, "" without one. It is asked once the caller is known; nil where there
	// are no files.
	Managed func(ctx context.Context, method, machineID, path string) string
	// Observers receive each request once its answer has ended, after what the gateway itself
	// records of it.
	Observers []Observer
	// Process returns the metrics of the process; nil where instances come and go.
	Process func() []metrics.Family
	// receives the machines that were changed, or whose cooldowns were reported, here; may be nil
	Changed func(machineID string)
}

// Replicas are the processes that serve the same machines.
type Replicas struct {
	Own   string                 // the name of this one
	Alive func(name string) bool // from memory, as it was within the last seconds
	// Usable returns how old knowledge of a machine may be, see snapshot.Cache.
	Usable func() time.Duration
}

// App is the whole program behind a platform: the gateway and the logic of the
// objects.
type App struct {
	*Gateway
	object *machine.Object
	cache  *snapshot.Cache
	pool   *accounts.Pool

	checkDisk     func(ctx context.Context)
	refreshPrices func(ctx context.Context)
	scraper       *api.Scraper
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
	app := &App{Gateway: &Gateway{Now: p.Now, Log: p.Log, Quiet: cfg.Quiet, Pause: p.Pause, Managed: p.Managed,
		Decoder: contentcoding.Decoder{Brotli: p.Brotli}}}
	w := &wiring{Config: cfg, Ports: p, serve: app.Serve}
	errs := w.read()
	app.Redact = w.redact
	if missing := w.unusable(errs); missing != "" {
		app.Misconfigured, app.Invalid = missing, w.missing() == ""
		app.SetRoutes([]Route{health})
		return app
	}
	for _, err := range append(errs.clients, errs.public, errs.prices, errs.level, errs.otel) {
		if err != nil { // its part does not work; the rest is served
			p.Log(2, "misconfigured: "+err.Error())
		}
	}
	app.PublicURL = w.public
	app.object = w.object()
	w.share()
	app.cache, app.pool = w.cache, w.pool
	sessions := w.sessions()
	app.Auth = sessions.Wrap()
	app.Observers = append([]Observer{w}, p.Observers...)
	app.Memory, app.Captures.Memory = w.memory, w.memory
	app.checkDisk, app.refreshPrices = w.checkDisk, w.refreshPrices
	h := w.endpoints(w.pool, p.Do)
	if p.Process != nil {
		w.process = func() []metrics.Family { return append(p.Process(), app.metrics()...) }
	}
	h.management = w.management(h, sessions)
	app.scraper = h.management.Metrics
	app.SetRoutes(withFeatures(routes(h)))
	return app
}

// Machine is the logic of the objects, for a platform that runs them itself.
func (a *App) Machine() *machine.Object { return a.object }

// ChangedElsewhere reports a change of a machine that another instance has made.
func (a *App) ChangedElsewhere(machineID string) {
	if a.cache != nil {
		a.cache.ChangedElsewhere(machineID)
	}
}

// Unchanged reports that all machines for which ChangedElsewhere was not called are as they
// were since a time.
func (a *App) Unchanged(since, at time.Time) {
	if a.cache != nil {
		a.cache.Unchanged(since, at)
	}
}

// Unreported returns of how many machines usage waits to be reported, with the end of a
// request.
func (a *App) Unreported() int {
	if a.pool == nil {
		return 0
	}
	return a.pool.Unreported()
}

// Object serves a call of a machine's object.
func (a *App) Object(ctx context.Context, st machinestorage.Storage, machineID, op string, body []byte) (int, []byte) {
	if a.object == nil {
		return 503, nil
	}
	return a.object.Handle(ctx, st, machineID, op, body)
}

// Alarm serves the alarm of a machine's object. After an error, which is logged, it must
// be run again.
func (a *App) Alarm(ctx context.Context, st machinestorage.Storage, machineID string) error {
	if a.object == nil {
		return nil
	}
	return a.object.Alarm(ctx, st, machineID)
}

// Buffered returns the machines whose objects have reports that are not written.
// The operation "flush" writes those of one.
func (a *App) Buffered() []string {
	if a.object == nil {
		return nil
	}
	return a.object.Buffered()
}

// HandOver returns what is buffered, for TakeOver of the App that replaces this
// one. Later reports are written at once.
func (a *App) HandOver() []byte {
	if a.object == nil {
		return nil
	}
	return a.object.HandOver()
}

// TakeOver buffers what HandOver has returned.
func (a *App) TakeOver(handed []byte) {
	if a.object != nil {
		a.object.TakeOver(handed)
	}
}

// Cron serves the scheduled trigger.
func (a *App) Cron(ctx context.Context, _ string) {
	if a.object != nil {
		a.checkDisk(ctx)
		a.object.Cron(ctx)
		a.refreshPrices(ctx)
	}
}

// Metrics returns the metrics of the process and of the machines, as the operator reads them
// with GET /metrics. accept is the field of the request.
func (a *App) Metrics(ctx context.Context, query, accept string) (contentType string, text []byte, err error) {
	if a.scraper == nil {
		return "", nil, a.misconfigured()
	}
	return a.scraper.Scrape(ctx, "", query, accept)
}

// metrics returns what the gateway knows of the process.
func (g *Gateway) metrics() []metrics.Family {
	memory := metrics.Family{Name: "weir.calls.memory", Unit: "By", Help: "Memory of the bodies and answers of calls."}
	memory.Add(float64(g.Memory.Used()))
	queue := metrics.Family{Name: "weir.calls.queued", Help: "Calls that wait for memory."}
	queue.Add(float64(g.Memory.Waiting()))
	sockets := metrics.Family{Name: "weir.sockets", Help: "Open WebSocket connections of clients."}
	g.mu.Lock()
	sockets.Add(float64(len(g.sockets)))
	g.mu.Unlock()
	return []metrics.Family{memory, queue, sockets}
}

// serveHealth answers whether the program runs; it says nothing else.
func serveHealth(context.Context, *auth.Call) (*httpmsg.Response, error) {
	return &httpmsg.Response{
		Status: 200,
		Header: httpmsg.Header{{Name: "content-type", Value: "application/json"}},
		Body:   stream.FromString(`{"status":"ok"}`),
	}, nil
}

// MemoryNeeds returns the memory of the calls under way.
func (a *App) MemoryNeeds() memory.Amount {
	if a.Memory == nil {
		return memory.Amount{}
	}
	return a.Memory.Needs()
}
