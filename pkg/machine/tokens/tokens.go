// Package tokens signs in at providers and refreshes the tokens of connections.
package tokens

import (
	"context"
	"io"
	"sync"
	"time"

	"weir/pkg/credentials/oauth"
	"weir/pkg/credentials/proxydial"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/upstream"
)

// Service refreshes the tokens of connections and signs in to providers. One
// value serves all objects of an instance. It remembers only what is under way:
// the rest is in the storage of each object.
type Service struct {
	Keyring *store.Keyring
	Objects rpc.Stub // for refreshes by alarm
	Do      upstream.Doer
	Pause   upstream.Pauser // may be nil: a failed write of new tokens is then not waited for
	Now     func() time.Time
	Rand    io.Reader
	Log     func(line string)
	// OAuth are the operator's clients at identity providers. Token endpoints
	// are theirs, or the provider table's.
	OAuth []oauth.Provider
	// Unusable has the reason why a provider's client of the operator cannot be used:
	// nothing is sent in its place.
	Unusable map[string]string
	// SignRS256 signs with a PKCS#8 key, for Google service accounts. If it is
	// nil, their tokens are not refreshed.
	SignRS256 func(ctx context.Context, pkcs8, data []byte) ([]byte, error)
	// Dialer opens the connections to proxies; nil if the platform has no sockets.
	// Proxy is the operator's, for connections without a proxy.
	Dialer proxydial.Dialer
	Proxy  Proxy
	// RefreshEvery is the minimum interval between two refreshes of one connection
	// if OAuth does not name one; zero means 60 s.
	RefreshEvery time.Duration

	mu      sync.Mutex         // of Flights and Unsaved
	Flights map[string]bool    // refreshes under way, by machine and connection
	Unsaved map[string]*issued // tokens that could not be stored yet; each is changed in turns of its machine only
}

// issued is a connection with new tokens that could not be stored yet.
type issued struct{ row storage.Connection }

func (o *Service) WriteLog(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}

// Begin reads the object's own row. It is called again after a call out.
func (o *Service) Begin(st storage.Storage, machineID string) *storage.Tx {
	t := storage.Open(st, machineID, o.Now(), o.NextRefresh)
	t.Keyring = o.Keyring
	return t
}
