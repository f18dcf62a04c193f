package llm

// joined puts texts together in time that grows with their length alone: a
// client, or an upstream, can send very many. One text by itself is not copied.
type joined struct {
	one string
	all []byte
}

// add appends a text, after sep if there is one before it. An empty one is
// nothing.
func (j *joined) add(sep, text string) {
	switch {
	case text == "":
	case j.all != nil:
		j.all = append(append(j.all, sep...), text...)
	case j.one == "":
		j.one = text
	default:
		j.all = make([]byte, 0, 2*(len(j.one)+len(sep)+len(text)))
		j.all = append(append(append(j.all, j.one...), sep...), text...)
	}
}

// text gives them all; nothing may be added after.
func (j *joined) text() string {
	if j.all != nil {
		return view(j.all)
	}
	return j.one
}
