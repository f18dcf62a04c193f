// Package routing turns a model string into the upstream model it names.
package routing

import (
	"weir/pkg/catalog"
	"weir/pkg/provider"
	"weir/pkg/store"
)

// Target is one upstream model and the connections that may serve it.
type Target struct {
	Provider *provider.Descriptor
	Alias    string       // output alias: a connection's prefix or the provider's alias
	Model    string       // upstream model id, without the alias
	Kind     catalog.Kind // "" when unknown
	// Connections are the active ones of the provider, in stored order.
	Connections []*store.Connection
}

// ID is the public id, "<alias>/<model>".
func (t *Target) ID() string { return t.Alias + "/" + t.Model }
