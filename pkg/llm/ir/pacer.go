package ir

// Work between two pauses, in bytes, and the bytes that each piece counts for.
const (
	maxWork   = 1 << 20
	PieceWork = 512
)

// Pacer lets other calls of the isolate run during a long translation.
type Pacer struct {
	Pause func() // nil never pauses
	work  int
}

// Work counts n bytes of work. A nil pacer does nothing.
func (p *Pacer) Work(n int) {
	if p == nil {
		return
	}
	if p.work += n; p.work >= maxWork && p.Pause != nil {
		p.work = 0
		p.Pause()
	}
}
