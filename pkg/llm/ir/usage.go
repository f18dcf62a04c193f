package ir

// Usage is the number of tokens of an answer. Input is the whole prompt,
// including what was read from and written to the cache. Output includes
// Reasoning.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	Known                                           bool // the upstream reported them
	Final                                           bool `json:"-"` // Output is the final count and replaces earlier ones

	// Parts that have prices of their own: of CacheWrite those kept for an hour, and of
	// Input and Output those that are not text.
	CacheWriteHour          int64 `json:",omitempty"`
	AudioInput, AudioOutput int64 `json:",omitempty"`
	ImageInput, ImageOutput int64 `json:",omitempty"`
	// Service is the tier that the answer was served in; "" is the standard one.
	Service string `json:",omitempty"`
}

// Merge replaces earlier counts with later ones; streams report them in parts.
func (u *Usage) Merge(v Usage) {
	u.Known = u.Known || v.Known
	u.Input = max(u.Input, v.Input)
	if u.Output = max(u.Output, v.Output); v.Final {
		u.Output = v.Output
	}
	u.CacheRead = max(u.CacheRead, v.CacheRead)
	u.CacheWrite = max(u.CacheWrite, v.CacheWrite)
	u.Reasoning = max(u.Reasoning, v.Reasoning)
	u.CacheWriteHour = max(u.CacheWriteHour, v.CacheWriteHour)
	u.AudioInput, u.AudioOutput = max(u.AudioInput, v.AudioInput), max(u.AudioOutput, v.AudioOutput)
	u.ImageInput, u.ImageOutput = max(u.ImageInput, v.ImageInput), max(u.ImageOutput, v.ImageOutput)
	if v.Service != "" {
		u.Service = v.Service
	}
}
