package manage

import (
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/secret"
)

// captureView describes a request whose bodies are stored.
type captureView struct {
	ID        string `json:"id"` // of the request
	KeyID     string `json:"keyId,omitempty"`
	At        int64  `json:"at"`
	ExpiresAt int64  `json:"expiresAt"`
	Bytes     int    `json:"bytes"`
}

func viewCapture(c *storage.Capture) captureView {
	return captureView{c.ID, c.KeyID, c.At, c.Until, c.Bytes}
}

// BodyView is a stored body.
type BodyView struct {
	ContentType string `json:"contentType,omitempty"`
	Bytes       int64  `json:"bytes"` // that have passed
	Cut         bool   `json:"cut"`   // text is the beginning of it
	Omitted     bool   `json:"omitted"`
	Text        string `json:"text"`
}

// ViewBody returns a stored body as it is shown.
func ViewBody(p *capture.Part) BodyView {
	return BodyView{p.Type, p.Bytes, p.Cut, p.Omitted, p.Text}
}

// captureList answers GET /api/captures, the newest first.
func (c *change) captureList() (any, error) {
	out := struct {
		Object   string        `json:"object"`
		Data     []captureView `json:"data"`
		Bytes    int           `json:"bytes"`
		MaxBytes int           `json:"maxBytes"`
	}{"list", []captureView{}, 0, storage.MaxCapturesBytes}
	all := c.Captures()
	for i := len(all) - 1; i >= 0; i-- {
		out.Data = append(out.Data, viewCapture(&all[i]))
		out.Bytes += all[i].Bytes
	}
	return out, nil
}

// captureShow answers GET /api/captures/{id}: the bodies of a request. Each view
// is recorded in the audit log.
func (c *change) captureShow() (any, error) {
	if err := c.signedIn(); err != nil {
		return nil, err
	}
	if err := c.mayExport(); err != nil {
		return nil, err
	}
	info, err := c.capture()
	if err != nil {
		return nil, err
	}
	row, _ := c.Get(storage.CapturePrefix + info.ID)
	plain, err := c.o.Keyring.Open(c.ID, rpc.CaptureField, info.ID, secret.Sealed(row))
	if err != nil { // its key is gone
		e := apierr.New(503, "key_unavailable", "The stored prompts and answers cannot be decrypted; the operator must check CREDENTIALS_KEY.")
		e.Err = err
		return nil, e
	}
	doc, err := capture.Read([]byte(plain.Reveal()))
	if err != nil {
		return nil, err
	}
	c.Audit(c.actor, "GET /api/captures/{id}", info.ID, nil)
	return struct {
		captureView
		Request BodyView `json:"request"`
		Answer  BodyView `json:"answer"`
	}{viewCapture(info), ViewBody(&doc.Request), ViewBody(&doc.Answer)}, nil
}

// capture returns the capture that the URL names.
func (c *change) capture() (*storage.Capture, error) {
	all := c.Captures()
	for i := range all {
		if all[i].ID == c.param() {
			return &all[i], nil
		}
	}
	return nil, apierr.New(404, "capture_not_found",
		"No bodies of this request are stored. GET /api/captures lists the requests that have some.")
}

// captureDelete answers DELETE /api/captures/{id}.
func (c *change) captureDelete() (any, error) {
	info, err := c.capture()
	if err != nil {
		return nil, err
	}
	c.RemoveCapture(info.ID)
	c.target, c.status = info.ID, 204
	return nil, nil
}

// captureDeleteAll answers DELETE /api/captures.
func (c *change) captureDeleteAll() (any, error) {
	c.RemoveCaptures()
	c.status = 204
	return nil, nil
}

// readCapture reads the settings of captures of a key. null stands for those of the
// machine.
func readCapture(in *Input, k *store.Key) {
	if percent, ok := in.int("capturePercent", 0, 100); ok {
		if k.CapturePercent = nil; !in.isNull("capturePercent") {
			n := int(percent)
			k.CapturePercent = &n
		}
	}
	if hours, ok := in.int("captureHours", 1, store.MaxCaptureHours); ok {
		k.CaptureHours = int(hours)
	}
}
