package audio

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/usage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/clientheader"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

const (
	speechTotal = 15 * time.Minute
	maxVoice    = 32 << 20 // bytes of an answer that is read whole (docs/reference/reliability.md, T43)
)

// speechRequest is one client's request for speech.
type speechRequest struct {
	call   *auth.Call
	body   []byte
	at     jsonscan.Value // of the model
	model  string
	voice  string
	given  bool // the voice stands in the body
	input  string
	format string // response_format, "mp3" when absent
	speed  string // as written, "" when absent
	hint   string // instructions
	events bool   // stream_format sse
	whole  bool   // ?response_format=json: {audio, format}
}

// spoken is one upstream call. Its request is a copy, whose format may be replaced
// by one that the provider has.
type spoken struct {
	accounts.Attempt
	speechRequest
	shape *speaker
	route string // endpoint of the row, if build has chosen another one
	audio []byte // of an answer that had to be unpacked
	mime  string
}

// Speech answers POST /v1/audio/speech (docs/reference/api-shapes.md, 5.1): the
// audio as it comes, with its true content type.
//
// The voice may be the third part of the model string. With the query
// response_format=json the answer is {audio: base64, format}. A provider that
// cannot write the requested format writes the one it has, and the format is listed
// among the dropped fields.
func (h *Handler) Speech(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	body, err := c.ReadBody()
	if err != nil {
		return nil, err
	}
	req, err := parseSpeech(c, body)
	if err != nil {
		return nil, err
	}
	targets, err := h.speechTargets(req)
	if err == nil {
		err = endpoint.CheckFurtherModels(c.Key, body, targets)
	}
	if err != nil {
		return nil, err
	}
	res, err := h.Accounts.Send(ctx, &accounts.Call{
		Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: targets, Build: req.build, Read: readSpeech,
		Repeats: true, Estimate: req.estimate(),
	})
	if err != nil {
		return nil, err
	}
	s := res.Attempt.State.(*spoken)
	if s.shape.finish != nil {
		return h.fetched(ctx, s, res)
	}
	if s.audio != nil {
		return s.answer(res), nil
	}
	if isEvents(res.Header) {
		return endpoint.Watch(c.Machine, res, `"type":"speech.audio.done"`), nil
	}
	return endpoint.Forward(c.Machine, res), nil
}

func parseSpeech(c *auth.Call, body []byte) (*speechRequest, error) {
	set, err := jsonscan.Read(body, "model", "input", "voice", "response_format", "speed", "instructions", "stream_format")
	if err != nil {
		return nil, endpoint.BadJSON(err)
	}
	s := &speechRequest{call: c, body: body, at: set.Get("model"), format: "mp3"}
	text := func(name string) string {
		v, _, _ := set.String(name)
		return v
	}
	if s.model = text("model"); s.model == "" {
		return nil, apierr.Invalid("model", "model is required.")
	}
	if s.input = text("input"); s.input == "" {
		return nil, apierr.Invalid("input", "You must provide an input: a text that is not empty.")
	}
	switch set.Get("voice").Kind {
	case jsonscan.Absent, jsonscan.Null:
	case jsonscan.String:
		s.voice = text("voice")
	case jsonscan.Object:
		s.voice = gjson.GetBytes(set.Raw("voice"), "id").Str
	default:
		return nil, apierr.Invalid("voice", "The voice must be a string or an object with an id.")
	}
	s.given = s.voice != ""
	if f := text("response_format"); f != "" {
		s.format = f
	}
	if v := set.Get("speed"); v.Kind == jsonscan.Number && v.End-v.Start < 32 {
		s.speed = string(set.Raw("speed"))
	} else if v.Kind > jsonscan.Null {
		return nil, apierr.Invalid("speed", "The speed must be a number.")
	}
	s.hint = text("instructions")
	s.events = text("stream_format") == "sse"
	s.whole = endpoint.Query(c.Query, "response_format") == "json"
	return s, nil
}

// speechTargets resolves the model; its last part is the voice if the body
// has none and the string has three parts.
func (h *Handler) speechTargets(s *speechRequest) ([]routing.Target, error) {
	model := s.model
	if at := strings.LastIndexByte(model, '/'); !s.given && strings.Count(model, "/") >= 2 {
		model, s.voice = model[:at], model[at+1:]
	}
	return endpoint.Targets(s.call, model, catalog.TTS, func(to *routing.Target) error {
		sp := speakerOf(to.Provider)
		if sp == nil || !to.Provider.Serves(sp.at()) {
			return endpoint.Refused("The provider of this model has no speech.")
		}
		if sp.build != nil && s.voice == "" {
			return apierr.Invalid("voice", "You must provide a voice.")
		}
		return nil
	})
}

// estimate returns what the speech may use, for budgets.
func (r *speechRequest) estimate() accounts.Estimate {
	if len(r.call.Machine.Budgets) == 0 {
		return accounts.Estimate{}
	}
	return accounts.Estimate{Input: int64(len(r.input)+3) / 4, Media: r.spoken()}
}

// spoken returns what a speech is billed by.
func (r *speechRequest) spoken() *usage.Media {
	return &usage.Media{Characters: int64(utf8.RuneCountInString(r.input))}
}

// build makes the upstream's request for one target and account.
func (r *speechRequest) build(to *routing.Target, conn *store.Connection,
	_ *accounts.Attempt) (*accounts.Attempt, error) {
	s := &spoken{speechRequest: *r, shape: speakerOf(to.Provider)}
	s.State = s
	s.Used.Media = r.spoken()
	req := &s.Request
	req.HeaderTimeout, req.Timeout = s.call.Machine.Settings.FirstByte(), speechTotal
	endpoint := s.shape.at()
	if s.shape.build == nil {
		out := jsonscan.Splice(s.body, s.at.Span, jsonscan.Quote(nil, to.Model))
		if !s.given && s.voice != "" {
			var err error
			if out, err = sjson.SetBytes(out, "voice", s.voice); err != nil {
				return nil, err
			}
		}
		req.Header = provider.RequestHeader(s.call.Header, clientheader.ToSpeech)
		req.Header.Set("content-type", "application/json")
		req.Body = stream.FromBytes(out)
	}
	var query string
	if s.shape.build != nil {
		body, q, err := s.shape.build(s, to)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		query = q
		req.Header = append(httpmsg.Header{{Name: "content-type", Value: "application/json"}},
			provider.IdempotencyKey(s.call.Header, 0)...)
		req.Body = stream.FromBytes(raw)
	}
	if s.route != "" {
		endpoint = s.route
	}
	var err error
	req.Method, req.URL, err = to.Provider.Endpoint(conn, endpoint, to.Model,
		provider.Part{Name: "voice_id", Value: s.voice})
	if err != nil {
		return nil, err
	}
	if query != "" {
		req.URL += "?" + query
	}
	if s.unpacked() {
		req.MaxBody, req.Timeout = maxVoice, s.call.Machine.Settings.Whole()
	}
	return &s.Attempt, nil
}

// fetched answers with audio of which the provider returned the address.
func (h *Handler) fetched(ctx context.Context, s *spoken, res *accounts.Result) (*httpmsg.Response, error) {
	address, err := s.shape.finish(ctx, h, s, res)
	if err != nil {
		return nil, err
	}
	most := int64(0)
	if s.whole || s.events {
		most = maxVoice
	}
	file, err := h.Downloads.Get(ctx, s.call.Request, address, nil, most)
	if err != nil {
		return nil, err
	}
	s.mime = file.Header.Get("content-type")
	if !strings.HasPrefix(s.mime, "audio/") {
		s.mime = contentType(s.format)
	}
	if most > 0 {
		if s.audio, err = stream.ReadAll(file.Body, most); err != nil {
			return nil, endpoint.BadBody(err)
		}
		return s.answer(res), nil
	}
	resp := endpoint.Answer(res.Header, provider.ContentType(s.mime), nil)
	resp.Body = file.Body
	return resp, nil
}

// unpacked reports whether the answer must be read whole.
func (s *spoken) unpacked() bool {
	return s.whole || s.shape.read != nil || s.events && s.shape.build != nil
}

// readSpeech unpacks an answer that must be, and else reads how it begins.
func readSpeech(a *accounts.Attempt, resp *upstream.Response) error {
	s := a.State.(*spoken)
	if !s.unpacked() {
		return endpoint.CheckStart(resp, true)
	}
	if s.shape.read == nil || s.shape.binary && !endpoint.IsJSON(resp.Header.Get("content-type")) {
		if err := endpoint.CheckStart(resp, true); err != nil {
			return err
		}
	}
	raw, err := stream.ReadAll(resp.Body, maxVoice)
	if err != nil {
		return endpoint.BadBody(err)
	}
	s.audio, s.mime = raw, resp.Header.Get("content-type")
	if s.shape.read != nil && !(s.shape.binary && !endpoint.IsJSON(s.mime)) {
		if err = endpoint.ValidJSON(raw); err == nil {
			s.audio, s.mime, err = s.shape.read(raw, s)
		}
		var shown *apierr.Error
		if errors.As(err, &shown) {
			return err
		}
	}
	if err == nil && len(s.audio) == 0 {
		err = errors.New("audio: the answer has no audio")
	}
	if err != nil {
		return endpoint.BadBody(err)
	}
	return nil
}

// answer writes audio that is in memory in the form asked for.
func (s *spoken) answer(res *accounts.Result) *httpmsg.Response {
	coded := base64.StdEncoding.EncodeToString(s.audio)
	switch {
	case s.whole:
		format := s.format
		for _, f := range formats {
			if strings.HasPrefix(s.mime, f[1]) {
				format = f[0]
			}
		}
		body, _ := json.Marshal(map[string]string{"audio": coded, "format": format})
		return endpoint.JSONAnswer(res.Header, body)
	case s.events:
		return endpoint.Answer(res.Header, "text/event-stream", []byte(
			`data: {"type":"speech.audio.delta","audio":"`+coded+"\"}\n\n"+
				`data: {"type":"speech.audio.done","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}`+"\n\n"))
	}
	return endpoint.Answer(res.Header, provider.ContentType(s.mime), s.audio)
}

// formats are the response formats and their content types
// (docs/reference/api-shapes.md, 5.1).
var formats = [...][2]string{
	{"mp3", "audio/mpeg"}, {"opus", "audio/ogg"}, {"aac", "audio/aac"}, {"flac", "audio/flac"}, {"wav", "audio/wav"},
	{"pcm", "audio/pcm"},
}

// contentType returns that of a response format.
func contentType(format string) string {
	for _, f := range formats {
		if f[0] == format {
			return f[1]
		}
	}
	return "application/octet-stream"
}

// choose returns the provider's name of the format asked for. A provider that
// does not have it uses its first one.
func (s *spoken) choose(own ...[2]string) string {
	for _, f := range own {
		if f[0] == s.format {
			return f[1]
		}
	}
	s.drop("response_format")
	s.format = own[0][0]
	return own[0][1]
}

func (s *spoken) drop(name string) { s.Dropped = append(s.Dropped, name) }
