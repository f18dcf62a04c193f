package stream

import "time"

// The limits of a client's body (docs/reference/reliability.md, T38).
const (
	SmallBody   = 64 << 10 // bytes that are read before the program runs, within UploadIdle
	UploadIdle  = 20 * time.Second
	UploadTotal = 120 * time.Second
	MinRate     = 64 << 10        // bytes a second that a body in memory must have
	MaxLag      = 5 * time.Second // that it may be behind
)
