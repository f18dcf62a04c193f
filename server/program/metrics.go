package program

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	rtmetrics "runtime/metrics"
	"strings"

	"weir/pkg/wire/apierr"
	"weir/pkg/wire/metrics"
	"weir/server/store"
)

// openMetrics opens the address at which metrics are read without a token, or returns nil
// without one.
func (s *settings) openMetrics() (net.Listener, error) {
	if s.metrics == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", s.metrics)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w", s.metrics, listenCause(err))
	}
	return l, nil
}

// serveMetrics serves GET /metrics at an address, until close is called.
func (v *server) serveMetrics(l net.Listener) (close func()) {
	if l == nil {
		return func() {}
	}
	v.metrics = l.Addr()
	loopback := l.Addr().(*net.TCPAddr).IP.IsLoopback()
	if !loopback {
		v.warn("--metrics %s is open to other computers, without a token", l.Addr())
	}
	server := &http.Server{
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { v.scrape(w, r, loopback) }),
		ErrorLog: v.host.ErrorLog(), ReadHeaderTimeout: v.limits.header, IdleTimeout: v.limits.idle,
		WriteTimeout: v.limits.stall,
	}
	go server.Serve(l) // ends when it is closed
	return func() { server.Close() }
}

// scrape answers a request for metrics.
func (v *server) scrape(w http.ResponseWriter, r *http.Request, loopback bool) {
	switch {
	case loopback && !isLocalName(r.Host): // a page whose name leads here
		http.Error(w, "The host of the address must be an IP address or localhost.", http.StatusForbidden)
	case r.URL.Path != "/metrics":
		http.Error(w, "Only /metrics is here.", http.StatusNotFound)
	case r.Method != "GET" && r.Method != "HEAD":
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
	default:
		kind, text, err := v.app.Metrics(r.Context(), r.URL.RawQuery, strings.Join(r.Header["Accept"], ","))
		if err != nil {
			e, status := (*apierr.Error)(nil), http.StatusInternalServerError
			message := "Internal error."
			if errors.As(err, &e) {
				status, message = e.Status, e.Message
			}
			http.Error(w, message, status)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Vary", "Accept")
		w.Write(text)
	}
}

// isLocalName reports whether the host of a request is an IP address or localhost.
func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

// process returns the metrics of the process.
func (k *stack) process() []metrics.Family {
	samples := []rtmetrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}, {Name: "/sched/goroutines:goroutines"},
	}
	rtmetrics.Read(samples)
	value := func(i int) float64 { return float64(samples[i].Value.Uint64()) }
	memory := metrics.Family{Name: "weir.memory", Unit: "By", Labels: []string{"kind"},
		Help: "Memory of the process: heap are objects, system is what it has of the system."}
	memory.Add(value(0), "heap")
	memory.Add(value(1)-value(2), "system")
	one := func(name, unit, help string, v float64) metrics.Family {
		f := metrics.Family{Name: name, Unit: unit, Help: help}
		f.Add(v)
		return f
	}
	out := []metrics.Family{
		memory,
		one("weir.goroutines", "", "Goroutines of the process.", value(3)),
		one("weir.start_time", "s", "When the process was started, in seconds since 1970.", float64(k.began.UnixMilli())/1000),
	}
	if info, err := os.Stat(filepath.Join(k.settings.data, store.FileName)); err == nil && k.database == nil {
		out = append(out, one("weir.database", "By", "The size of the database file.", float64(info.Size())))
	}
	if k.inFlight != nil {
		out = append(out, one("weir.calls", "", "Calls of clients that are under way.", float64(k.inFlight())))
	}
	return out
}

// parseMetrics reads the address of the metrics.
func parseMetrics(v string) (string, error) {
	if v == "" {
		return "", nil
	}
	a, err := parseListen(v)
	if err != nil || a.network != "tcp" {
		return "", usagef("--metrics %s: it must be HOST:PORT, as 127.0.0.1:9090, or :PORT for every address", v)
	}
	return v, nil
}
