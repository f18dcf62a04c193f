package store

import "time"

// Time limits of upstream calls on the endpoints that forward a client's
// request. A setting replaces the default everywhere. Search, web fetch, model
// lists and connection tests have limits of their own.
const (
	// FirstEvent is how long a stream may take to its first event.
	FirstEvent = 300 * time.Second
	// WholeAnswer is how long any other answer may take: to its head, and
	// whole if it is JSON.
	WholeAnswer = 600 * time.Second
	// Silence is how long an upstream may be silent within a body.
	Silence = 300 * time.Second
)

// FirstEvent returns how long a stream may take to its first event.
func (s *Settings) FirstEvent() time.Duration { return orElse(s.FirstByteSeconds, FirstEvent) }

// FirstByte returns how long any other answer may take to its head.
func (s *Settings) FirstByte() time.Duration { return orElse(s.FirstByteSeconds, WholeAnswer) }

// Whole returns how long a JSON answer may take altogether.
func (s *Settings) Whole() time.Duration { return max(s.FirstByte(), WholeAnswer) }

// Idle returns how long an upstream may be silent within a body.
func (s *Settings) Idle() time.Duration { return orElse(s.IdleSeconds, Silence) }

func orElse(seconds int, otherwise time.Duration) time.Duration {
	if seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return otherwise
}
