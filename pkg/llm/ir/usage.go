package ir

// Usage counts the tokens of an answer. Input is the whole prompt with what
// was read from and written to the cache, Output has the reasoning in it.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	Known                                           bool // the upstream told
	Last                                            bool `json:"-"` // Output is the final count and replaces earlier ones
}

// Merge takes later figures over earlier ones; streams tell them in parts.
func (u *Usage) Merge(v Usage) {
	u.Known = u.Known || v.Known
	u.Input = max(u.Input, v.Input)
	if u.Output = max(u.Output, v.Output); v.Last {
		u.Output = v.Output
	}
	u.CacheRead = max(u.CacheRead, v.CacheRead)
	u.CacheWrite = max(u.CacheWrite, v.CacheWrite)
	u.Reasoning = max(u.Reasoning, v.Reasoning)
}
