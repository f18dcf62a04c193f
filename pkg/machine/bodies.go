package machine

import (
	"time"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/manage"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/machine/telemetry"
	"weir/pkg/store"
	"weir/pkg/wire/capture"
	"weir/pkg/wire/contentcoding"
	"weir/pkg/wire/jsoncodec"
	"weir/pkg/wire/otlp"
	"weir/pkg/wire/secret"
)

// queueBodies queues a captured request for each destination that has chosen bodies. The item
// has the record of the request alone: its bodies stay in the capture, sealed, until they are
// sent. So they are stored once, and are not sent after the capture was deleted.
func queueBodies(t *storage.Tx, r *store.Request, until int64) {
	known := storage.TidyRequest(r) // false for a gateway of an earlier version
	if r.At <= 0 || r.At > t.Now+storage.Day {
		r.At = t.Now
	}
	for _, d := range t.Destinations() {
		switch {
		case d.Paused || !deliver.TakesBodies(d.Options):
			continue
		case !known:
			t.Lose(d.ID, 1)
			continue
		}
		item := storage.Delivery{DestinationID: d.ID, Type: storage.Bodies, Body: storage.Encode(*r), Until: until}
		if d.Kind == storage.LogKind {
			item.Title = "bodies/machine=" + t.ID + time.UnixMilli(r.At).UTC().Format("/date=2006-01-02/hour=15/") +
				r.ID + ".json.gz"
		} else {
			item.Title, item.Until = r.ID, min(until, t.Now+telemetryFor)
		}
		t.Enqueue(item)
	}
}

// openBodies returns what is sent for an item of type storage.Bodies, or nil and why nothing is.
func (o *Object) openBodies(t *storage.Tx, d *deliver.Opened, item *storage.Delivery) (*storage.Delivery,
	storage.Result) {
	dropped := func(why string) (*storage.Delivery, storage.Result) {
		return nil, storage.Result{Verdict: storage.Dropped, Why: why}
	}
	if !deliver.TakesBodies(d.Options) {
		return dropped("bodies are not sent there any more")
	}
	var r store.Request
	if err := jsoncodec.Unmarshal(item.Body, &r); err != nil {
		return dropped("its record is not readable")
	}
	sealed, ok := t.Get(storage.CapturePrefix + r.ID)
	if !ok {
		return dropped("its bodies are not stored any more")
	}
	plain, err := o.Keyring.Open(t.ID, rpc.CaptureField, r.ID, secret.Sealed(sealed))
	if err != nil {
		return dropped("its bodies cannot be opened with the present CREDENTIALS_KEY")
	}
	doc, err := capture.Read([]byte(plain.Reveal()))
	if err != nil {
		return dropped("its bodies are not readable")
	}
	sent := *item
	if d.Kind == storage.LogKind {
		sent.Body = bodiesObject(t, &r, &doc)
	} else {
		sent.Title, sent.Body = deliver.Logs, bodiesEvent(t, &d.Destination, &r, &doc)
	}
	return &sent, storage.Result{}
}

// bodiesObject returns the object of a request in a log export: its line with two more members,
// as GET /api/captures/{id} has them.
func bodiesObject(t *storage.Tx, r *store.Request, doc *capture.Document) []byte {
	line := t.LogLine(r, storage.Encode(r), map[string]string{})
	line = append(line[:len(line)-1], `,"request":`...)
	line = append(append(line, storage.Encode(manage.ViewBody(&doc.Request))...), `,"answer":`...)
	line = append(append(line, storage.Encode(manage.ViewBody(&doc.Answer))...), "}\n"...)
	return contentcoding.Gzip(line)
}

// bodiesEvent returns the event of a request for a collector. Its texts are cut until it is within
// the bound of an item.
func bodiesEvent(t *storage.Tx, d *storage.Destination, r *store.Request, doc *capture.Document) []byte {
	f := telemetry.Fold{BaseURL: baseURLs(t)}
	for room := maxEntryBody - 8<<10; ; room /= 2 {
		f.Reset()
		event := f.Details(r, doc, room)
		body, _ := otlp.Body(nil, deliver.OTLPFormat(d.Options), resourceOf(t, d), []otlp.Log{event}, 0)
		if len(body) <= maxEntryBody || room == 0 {
			return body
		}
	}
}
