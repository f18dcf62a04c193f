// Package manage has the handlers of /api that run in the object of a machine: they check
// and change its records in one turn, with the audit record. No answer contains a stored
// secret. Package api forwards the calls.
package manage

import (
	"weir/pkg/machine/deliver"
	"weir/pkg/machine/tokens"
	"weir/pkg/wire/apierr"
)

// Manager serves the management calls of machines inside their objects.
type Manager struct {
	tokens.Service
	// KeySecret is the worker secret API_KEY_SECRET.
	KeySecret []byte
	// ZoneOffset returns how far a time zone, such as "Europe/Berlin", is ahead of UTC
	// at a time, in seconds. It reports false for an unknown one. Nil knows UTC alone.
	ZoneOffset func(zone string, unixMilli int64) (seconds int, ok bool)
	// AllowPrivate and OwnHosts are those of provider.CheckBaseURL.
	AllowPrivate bool
	OwnHosts     []string
	// PublicURL is the scheme and host that the gateway is reached at; "" if they are not known.
	PublicURL string
	// Collector is the collector of OpenTelemetry that the operator has set for all machines,
	// or nil.
	Collector *deliver.Opened
	// Reseed allows a document in KV to change an existing machine.
	Reseed bool
	// Began is when the only process that serves the machines was started, in Unix
	// milliseconds; 0 if there may be others.
	Began int64
	// ConfigFile returns what became of the configuration file of the server, nil for a
	// machine that has none; nil where there are no files.
	ConfigFile func(machineID string) *ConfigFile
}

// ConfigFile is what became of a configuration file.
type ConfigFile struct {
	Name  string `json:"name"`
	State string `json:"state"`           // applied, pending or failed
	Error string `json:"error,omitempty"` // of failed
	// Owned are the ids of the rows that it owns by the path of their collection, as
	// /api/keys; * stands for all of them.
	Owned map[string][]string `json:"owned,omitempty"`
}

// ErrManagedByFile returns the refusal of a change of what a configuration file owns.
func ErrManagedByFile(name string) *apierr.Error {
	return apierr.New(409, "managed_by_file", "This is managed by %s, the configuration file of the server. Change it there.", name)
}
