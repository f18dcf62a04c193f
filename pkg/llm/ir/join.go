package ir

// Joiner joins texts in time proportional to their length, because a client or
// an upstream can send very many. A single text is not copied.
type Joiner struct {
	First string
	all   []byte
}

// Add appends a text, after sep if it is not the first. An empty text adds
// nothing.
func (j *Joiner) Add(sep, text string) {
	switch {
	case text == "":
	case j.all != nil:
		j.all = append(append(j.all, sep...), text...)
	case j.First == "":
		j.First = text
	default:
		j.all = make([]byte, 0, 2*(len(j.First)+len(sep)+len(text)))
		j.all = append(append(append(j.all, j.First...), sep...), text...)
	}
}

// Text returns the joined texts; nothing may be added after.
func (j *Joiner) Text() string {
	if j.all != nil {
		return View(j.all)
	}
	return j.First
}
