package rpc

import "weir/pkg/wire/apierr"

// PublicStatus is the answer of a machine's object to the operation "status", whose body is
// empty: what the machine shows to anybody, without names of accounts, keys, costs and
// counts. 404 if it shows nothing.
type PublicStatus struct {
	Object    string        `json:"object"`    // status
	By        string        `json:"by"`        // what Data is by: provider or model
	State     string        `json:"state"`     // of all: operational, degraded, down or unknown
	UpdatedAt int64         `json:"updatedAt"` // Unix milliseconds
	Data      []PublicState `json:"data"`
}

// PublicState is the state of a provider or a model.
type PublicState struct {
	Name  string `json:"name"`
	State string `json:"state"` // of this hour and the one before: as that of all
	// Success24h and Success30d are shares of the attempts, nil without any.
	Success24h *float64 `json:"success24h"`
	Success30d *float64 `json:"success30d"`
	// Hours and Days have a state for each hour of the last 24 and each day, of UTC, of the
	// last 30, the current one last; "" without attempts.
	Hours []string `json:"hours"`
	Days  []string `json:"days"`
}

// ErrNoStatus returns the error for a machine that shows no status, or does not exist.
func ErrNoStatus() error {
	return apierr.New(404, "not_found", "There is no public status page at this address. That of a machine is at "+
		"/{machineId}/status, once its setting publicStatus is providers or models.")
}
