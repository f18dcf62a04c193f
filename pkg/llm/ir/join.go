package ir

// Joiner puts texts together in time that grows with their length alone: a
// client, or an upstream, can send very many. One text by itself is not copied.
type Joiner struct {
	One string
	all []byte
}

// Add appends a text, after sep if there is one before it. An empty one is
// nothing.
func (j *Joiner) Add(sep, text string) {
	switch {
	case text == "":
	case j.all != nil:
		j.all = append(append(j.all, sep...), text...)
	case j.One == "":
		j.One = text
	default:
		j.all = make([]byte, 0, 2*(len(j.One)+len(sep)+len(text)))
		j.all = append(append(append(j.all, j.One...), sep...), text...)
	}
}

// Text gives them all; nothing may be added after.
func (j *Joiner) Text() string {
	if j.all != nil {
		return View(j.all)
	}
	return j.One
}
