package storage

import "slices"

// Bounds of the captures of a machine. The oldest are dropped.
const (
	MaxCaptures      = MaxRequests
	MaxCapturesBytes = 64 << 20
)

// Capture describes the stored bodies of a call. They are a row of their own, sealed.
type Capture struct {
	ID    string `json:"id"` // of the request
	KeyID string `json:"keyId,omitempty"`
	At    int64  `json:"at"`    // Unix milliseconds
	Until int64  `json:"until"` // when they are removed, Unix milliseconds
	Bytes int    `json:"bytes"` // of the row
}

// captureList is the row of all captures.
//
//easyjson:json
type captureList []Capture

// Captures returns the captures, the oldest first. Those whose time is over are not
// among them, but may have a row until the next prune.
func (t *Tx) Captures() []Capture {
	all := t.captures()
	return slices.DeleteFunc(all, func(c Capture) bool { return c.Until <= t.Now })
}

func (t *Tx) captures() (all captureList) {
	if t.Meta.Captures {
		t.Load(CapturesRow, &all)
	}
	return all
}

// AddCapture stores the sealed bodies of a call.
func (t *Tx) AddCapture(c Capture, sealed []byte) {
	c.Bytes = len(sealed)
	all := t.captures()
	n, size := len(all)+1, c.Bytes
	for i := range all {
		size += all[i].Bytes
	}
	all = slices.DeleteFunc(all, func(old Capture) bool {
		if old.ID != c.ID && old.Until > t.Now && n <= MaxCaptures && size <= MaxCapturesBytes {
			return false
		}
		n--
		size -= old.Bytes
		t.Del(CapturePrefix + old.ID)
		return true
	})
	t.Set(CapturePrefix+c.ID, sealed)
	t.putCaptures(append(all, c))
}

// RemoveCapture removes the capture of a request.
func (t *Tx) RemoveCapture(id string) {
	all := t.captures()
	i := slices.IndexFunc(all, func(c Capture) bool { return c.ID == id })
	if i < 0 {
		return
	}
	t.Del(CapturePrefix + id)
	t.putCaptures(slices.Delete(all, i, i+1))
}

// RemoveCaptures removes all captures.
func (t *Tx) RemoveCaptures() {
	for _, c := range t.captures() {
		t.Del(CapturePrefix + c.ID)
	}
	if t.Meta.Captures {
		t.putCaptures(nil)
	}
}

// DropCaptures removes all captures at once, before the turn looks at all rows.
func (t *Tx) DropCaptures() error {
	if !t.Meta.Captures {
		return nil
	}
	t.RemoveCaptures()
	return t.Commit()
}

// PruneCaptures removes the captures whose time is over.
func (t *Tx) PruneCaptures() {
	if !t.Meta.Captures {
		return
	}
	all := t.captures()
	left := all[:0:0]
	for _, c := range all {
		if c.Until <= t.Now {
			t.Del(CapturePrefix + c.ID)
		} else {
			left = append(left, c)
		}
	}
	if len(left) < len(all) {
		t.putCaptures(left)
	}
}

func (t *Tx) putCaptures(all captureList) {
	if t.Meta.Captures = len(all) > 0; t.Meta.Captures {
		t.Put(CapturesRow, all)
	} else {
		t.Del(CapturesRow)
	}
}
