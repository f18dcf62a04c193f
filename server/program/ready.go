package program

import (
	"io"
	"net/http"
	"time"

	"weir/server/postgres"
)

// readiness answers /health/ready before next: whether a load balancer should send calls here.
//
//	200 {"status":"ready","storage":"ok"}
//	200 {"status":"ready","storage":"away"}     the database does not answer; calls go on
//	503 {"status":"unready","storage":"away"}   calls do not go on, or since the start
//	503 {"status":"stopping","storage":"ok"}
//
// With a configuration file there is "config": applied, pending, or failed if it is not what
// the machine has.
func (v *server) readiness(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health/ready" || r.Method != "GET" && r.Method != "HEAD" {
			next.ServeHTTP(w, r)
			return
		}
		status, word, storage := http.StatusOK, "ready", "ok"
		if away := awaySince(v.database); away > 0 {
			if storage = "away"; away > v.settings.away {
				status, word = http.StatusServiceUnavailable, "unready"
			}
		}
		if v.gate.closing() {
			status, word = http.StatusServiceUnavailable, "stopping"
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		config := ""
		if is := v.file.word(); is != "" {
			config = `,"config":"` + is + `"`
		}
		io.WriteString(w, `{"status":"`+word+`","storage":"`+storage+`"`+config+`}`)
	})
}

// awaySince returns for how long a database has not answered, 0 if it does and for a data directory.
func awaySince(e *postgres.Engine) time.Duration {
	if e == nil {
		return 0
	}
	return e.Away()
}
