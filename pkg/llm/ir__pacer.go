package llm

// Work between two pauses, in bytes, and the bytes that each piece counts for.
const (
	maxWork   = 1 << 20
	pieceWork = 512
)

// pacer lets other calls of the isolate run during a long translation.
type pacer struct {
	pause func() // nil never pauses
	work  int
}

// did counts n bytes of work. A nil pacer does nothing.
func (p *pacer) did(n int) {
	if p == nil {
		return
	}
	if p.work += n; p.work >= maxWork && p.pause != nil {
		p.work = 0
		p.pause()
	}
}
