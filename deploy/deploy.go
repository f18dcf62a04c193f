// Package deploy has the files of this folder that the program installs.
package deploy

import _ "embed"

// Unit and Socket are the units of systemd for a whole computer.
var (
	//go:embed weir.service
	Unit string
	//go:embed weir.socket
	Socket string
)
