package storage

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/wire/secret"
)

// Destination is a stored target of notifications, telemetry or logs: what an owner has
// set. Package deliver has the kinds. Its Outbox is the state of its deliveries.
type Destination struct {
	Own
	ID      string                   `json:"id"`
	Name    string                   `json:"name"`
	Kind    string                   `json:"kind"`
	Paused  bool                     `json:"paused,omitempty"`
	Secrets map[string]secret.Sealed `json:"secrets,omitempty"` // sealed for SealedAs
	Last4   map[string]string        `json:"last4,omitempty"`   // of secrets of 20 characters and more
	Host    string                   `json:"host,omitempty"`    // of its address
	Options map[string]string        `json:"options,omitempty"`
	// Events are those that a target of notifications receives. None means the default ones.
	Events     []string `json:"events,omitempty"`
	CreatedAt  int64    `json:"createdAt"`
	UpdatedAt  int64    `json:"updatedAt"`
	Generation int64    `json:"generation"`
}

// SealedAs returns the name that the secrets of a destination are sealed for, in the
// place of the id of a connection.
func (d *Destination) SealedAs() string { return DestinationPrefix + d.ID }

// Destinations returns the destinations in the order of their creation.
func (t *Tx) Destinations() []Destination { return inOrder[Destination](t, DestinationPrefix) }

// Destination returns the destination with an id.
func (t *Tx) Destination(id string) (d Destination, ok bool) {
	ok = rpc.IsRowID(id) && t.Load(DestinationPrefix+id, &d)
	return d, ok
}

// PutDestination stores a changed destination under the generation of this turn.
func (t *Tx) PutDestination(d *Destination) {
	d.Generation = t.Touch("destinations")
	t.putRecord(DestinationPrefix+d.ID, d)
	if d.Kind == LogKind {
		t.openLog(d.ID, d.Paused)
	}
	t.Suspect = true
}

// DeleteDestination removes a destination with what waits for it.
func (t *Tx) DeleteDestination(id string) {
	t.Touch("destinations")
	t.Del(DestinationPrefix + id)
	t.DropOutbox(id)
	t.closeLog(id)
}
