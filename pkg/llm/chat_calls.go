package llm

import "strings"

// chatCallOf is a tool call of a stream. Some servers give parallel calls one
// index, and tell them apart by their ids alone.
type chatCallOf struct {
	index, block int
	id           string
}

// block gives the number of a call. Only a piece with a name can begin one.
func (s *chatSource) block(index int, id string, named bool) int {
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := &s.calls[i]
		switch {
		case c.index != index:
		case !named || id == "" || c.id == id:
			return c.block
		default:
			return s.begun(index, 1<<20+len(s.calls), id)
		}
	}
	return s.begun(index, index, id)
}

func (s *chatSource) begun(index, block int, id string) int {
	if len(s.calls) < 1<<12 {
		s.calls = append(s.calls, chatCallOf{index, block, strings.Clone(id)})
	}
	return block
}
