// Package snapshot keeps what an isolate knows of the machines it serves.
package snapshot

import "weir/pkg/store"

// Machine is a parsed replica of one machine with its indexes. It is shared by
// the requests of an isolate and must not be changed.
type Machine struct {
	*store.Machine
}
