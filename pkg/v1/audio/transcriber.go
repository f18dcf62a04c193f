package audio

import (
	"context"

	"weir/pkg/accounts"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/wire/upstream"
)

// transcriber is how a provider's speech to text is spoken to.
type transcriber struct {
	providers []string // ids of the rows that have it
	endpoint  string   // of the row, where it is not the client's
	only      bool     // no translations
	speakers  bool     // tells speakers apart where it is asked to
	// build makes the request; nil sends the client's form with the upstream's
	// model.
	build func(u *transcription, to *routing.Target, req *upstream.Request) error
	// read makes a transcript of the answer; nil passes it on.
	read func(u *transcription, raw []byte) (*transcript, error)
	// finish waits for the transcript where the answer only begins it.
	finish func(ctx context.Context, h *Handler, u *transcription, res *accounts.Result) (*transcript, error)
}

// openAIForm is OpenAI's form, which most providers take as it is.
var openAIForm = transcriber{}

var transcribers = [...]*transcriber{&deepgram, &elevenLabs, &assemblyAI, &geminiAudio, &cartesiaForm, &xaiForm,
	&cloudflareTranscriber, &falTranscriber, &unknownForm}

// unknownForm are providers whose row has an endpoint of a shape that is not
// adapted; they list no such models.
var unknownForm = transcriber{providers: []string{"replicate", "minimax"}, endpoint: "none"}

// transcriberOf returns the shape of a provider.
func transcriberOf(d *provider.Descriptor) *transcriber {
	for _, t := range transcribers {
		for _, id := range t.providers {
			if id == d.ID {
				return t
			}
		}
	}
	return &openAIForm
}

// at returns the endpoint of the row for the client's.
func (t *transcriber) at(endpoint string) string {
	switch {
	case t.only && endpoint != "transcriptions":
		return "none"
	case t.endpoint != "":
		return t.endpoint
	}
	return endpoint
}
