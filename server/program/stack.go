package program

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"weir/pkg/gateway"
	"weir/server/dial"
	"weir/server/host"
	"weir/server/objects"
	"weir/server/postgres"
	"weir/server/store"
)

// stack is the program over an open data directory.
type stack struct {
	settings  *settings
	secrets   secrets
	first     bool // the secrets or the first machine were created by this start
	config    host.Config
	app       *gateway.App
	transport *http.Transport // of upstream calls
	engine    objects.Engine
	database  *postgres.Engine // the engine, if it is one; else nil
	objects   *objects.Runner
	codes     *codes
	file      *configFile // nil without one
	began     time.Time
	updates   *updates   // nil without CHECK_UPDATES
	inFlight  func() int // calls of clients that are under way; nil without a server
}

// prepare creates the data directory, or returns an error if it cannot be used.
// Wrong settings are an error before anything is created.
func (s *settings) prepare() error {
	stand := strings.Repeat("x", minSecret)
	placeholders, _ := s.secretEnvironment.over(secrets{stand, stand, stand})
	if _, err := s.config(placeholders); err != nil {
		return err
	}
	if s.database != "" {
		return nil
	}
	return checkDataDir(s.data, s.socketInData())
}

// open opens the data directory with the machines' objects. listens are the
// addresses of the server.
func (r *run) open(s *settings, log *logger, listens []netip.AddrPort) (*stack, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	own, first, err := r.loadSecrets(s)
	if err != nil {
		return nil, err
	}
	program, err := s.config(own)
	if err != nil {
		return nil, err
	}
	program.Version = r.version()
	k := &stack{settings: s, secrets: own, first: first}
	now, err := r.openEngine(k, log)
	if err != nil {
		return nil, err
	}
	k.began = now()
	policy := &dial.Policy{AllowPrivate: program.AllowPrivate, Own: listens, Resolver: r.Resolver}
	k.transport = dial.Transport(policy)
	transport := dial.Fresh(k.transport)
	if r.Transport != nil {
		transport = r.Transport(transport)
	}
	engine := k.engine
	if r.Engine != nil {
		engine = r.Engine(engine)
	}
	k.objects = objects.New(engine, objects.Log(log.line), objects.Clock(now))
	k.config = host.Config{
		Gateway: program, Memory: s.memory, Requests: s.requests, Objects: k.objects, Outside: k.objects.Outside,
		Transport: dial.Decode(transport),
		Dialer:    dial.NewSockets(policy, k.objects.Outside),
		Origin:    s.proxies.origin, ClientAddress: s.proxies.clientAddress,
		SpendCode: k.codes.spend, Now: now, Process: k.process, Replicas: k.replicas(),
		Log:  log.line,
		Disk: func() (free, size int64) { return diskSpace(s.data) },
	}
	if isTrue(s.variable("CHECK_UPDATES")) {
		k.updates = &updates{from: r.releases(""), own: r.version(), log: log.line}
		k.config.Newer = k.updates.newer
	}
	if s.configFile != "" {
		k.file = &configFile{path: s.configFile}
		k.config.ConfigFile, k.config.Managed = k.file.of, k.file.managing
	}
	k.app = host.NewApp(k.config)
	k.objects.Use(k.app)
	engine.Watch(k.app.ChangedElsewhere, k.app.Unchanged, k.objects.Ring)
	if err := k.objects.Start(); err != nil {
		k.engine.Close()
		return nil, fmt.Errorf("data directory %s: %w", s.data, err)
	}
	return k, nil
}

// openEngine opens the data directory or the database, and returns the clock of the program.
func (r *run) openEngine(k *stack, log *logger) (now func() time.Time, err error) {
	s := k.settings
	if s.database != "" {
		k.database, err = postgres.Open(s.database, r.version(), log.line)
		if err != nil {
			return nil, err
		}
		if now = r.Now; now == nil {
			now = k.database.Now
		}
		k.engine, k.codes = k.database, &codes{store: codeRows{k.database}, now: now}
		return now, r.checkSharedSecrets(k)
	}
	now = r.now()
	wait := store.LockWait
	if s.passed { // clients wait in the socket while the process before ends
		wait = r.limits.stop()
	}
	st, err := store.OpenWithin(s.data, wait)
	if err != nil {
		return nil, err
	}
	if st.Damaged {
		r.warn("%s: one of its two pages that name the last change is damaged, so the changes of the last moment before the stop may be missing; compare with a backup, and check the disk", filepath.Join(s.data, store.FileName))
	}
	k.engine, k.codes = st, openCodes(s.data, now)
	return now, nil
}

// replicas returns the servers that share the database, nil for one that is alone.
func (k *stack) replicas() *gateway.Replicas {
	if k.database == nil {
		return nil
	}
	return &gateway.Replicas{Own: k.database.Replica(), Alive: k.database.Alive, Usable: func() time.Duration {
		if k.database.Away() > 0 {
			return k.settings.away
		}
		return minAway
	}}
}

// close ends the turns of the objects, and closes the data directory.
func (k *stack) close(ctx context.Context) error {
	err := k.objects.Stop(ctx)
	if closed := k.engine.Close(); err == nil {
		err = closed
	}
	return err
}
