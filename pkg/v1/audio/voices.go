package audio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"weir/pkg/accounts"
	"weir/pkg/auth"
	"weir/pkg/catalog"
	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/routing"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
	"weir/pkg/wire/stream"
	"weir/pkg/wire/upstream"
)

// Voice is one entry of a list of voices. Model is ready for a speech call:
// "<alias>/<tts model>/<voice>".
type Voice struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Lang       string `json:"lang"`
	Gender     string `json:"gender"`
	Model      string `json:"model"`
	PreviewURL string `json:"preview_url,omitempty"`

	own string // tts model that the voice belongs to
}

const (
	voicesFor     = 5 * time.Minute
	maxVoiceLists = 128
	maxVoicePages = 10
	maxVoiceBody  = 4 << 20
)

type voicesKey struct {
	machineID, connectionID string
	generation              int64
}

type voiceList struct {
	at     time.Time
	voices []Voice
}

// Voices answers GET /v1/audio/voices?provider=<id or alias>&lang=<code>.
//
//	{"object":"list","data":[{id, name, lang, gender, model, preview_url?}]}
//
// Lists are kept per connection for 5 min; lang keeps the voices of a language,
// "en" also those of en-US. 400 for a missing or unknown provider and without
// credentials, 502 when the provider fails.
func (h *Handler) Voices(ctx context.Context, c *auth.Call) (*httpmsg.Response, error) {
	name := endpoint.Query(c.Query, "provider")
	d := provider.ByAlias(name)
	if d == nil {
		d = provider.Lookup(name)
	}
	if d != nil && !hasVoices(d) {
		d = nil
	}
	if name == "" || d == nil {
		var known []string
		for _, row := range provider.All() {
			if hasVoices(row) {
				known = append(known, row.ID)
			}
		}
		return nil, apierr.Invalid("provider", "The provider must be one of %s.", strings.Join(known, ", "))
	}
	if c.Machine == nil || len(c.Machine.Active(d.ID)) == 0 {
		e := apierr.Invalid("provider", "No %s account is connected.", d.Name)
		e.Code = "no_credentials"
		return nil, e
	}
	conns := c.Machine.Active(d.ID)
	voices, err := h.list(ctx, c, d, conns)
	if err != nil {
		return nil, err
	}
	alias := d.Alias
	if p := conns[0].Data.Prefix; p != "" {
		alias = p
	}
	fallback := firstModel(d)
	lang := strings.ToLower(endpoint.Query(c.Query, "lang"))
	out := make([]Voice, 0, len(voices))
	for _, v := range voices {
		if l := strings.ToLower(v.Lang); lang != "" && l != lang && !strings.HasPrefix(l, lang+"-") &&
			!strings.HasPrefix(l, lang+"_") {
			continue
		}
		v.own = cmp.Or(v.own, fallback)
		v.Model = alias + "/" + v.own + "/" + v.ID
		out = append(out, v)
	}
	body, err := json.Marshal(struct {
		Object string  `json:"object"`
		Data   []Voice `json:"data"`
	}{"list", out})
	if err != nil {
		return nil, err
	}
	return endpoint.JSONAnswer(nil, body), nil
}

// firstModel returns the speech model that voices without one of their own are
// for.
func firstModel(d *provider.Descriptor) string {
	for _, m := range catalog.Models(d.Alias) {
		if m.Kind == catalog.TTS {
			return m.ID
		}
	}
	return "default"
}

func hasVoices(d *provider.Descriptor) bool { return voiceSourceOf(d) != nil }

// list returns the voices of a provider's first account that answers.
func (h *Handler) list(ctx context.Context, c *auth.Call, d *provider.Descriptor,
	conns []*store.Connection) ([]Voice, error) {
	src := voiceSourceOf(d)
	if src.fixed != nil {
		return src.fixed, nil
	}
	key := voicesKey{c.MachineID, conns[0].ID, conns[0].Generation}
	kept := h.cachedVoices(key)
	if kept != nil && h.Now().Sub(kept.at) < voicesFor {
		return kept.voices, nil
	}
	voices, err := h.fetch(ctx, c, d, src, conns)
	if err != nil {
		if kept != nil {
			return kept.voices, nil
		}
		return nil, err
	}
	h.keepVoices(key, voices)
	return voices, nil
}

// cachedVoices returns the last list of a connection, or nil.
func (h *Handler) cachedVoices(key voicesKey) *voiceList {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.voices[key]
}

// keepVoices caches the list of a connection.
func (h *Handler) keepVoices(key voicesKey, voices []Voice) {
	now := h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.voices == nil {
		h.voices = map[voicesKey]*voiceList{}
	}
	for k := range h.voices {
		if len(h.voices) < maxVoiceLists {
			break
		}
		delete(h.voices, k)
	}
	h.voices[key] = &voiceList{now, voices}
}

// fetch reads all pages of a list, with one account.
func (h *Handler) fetch(ctx context.Context, c *auth.Call, d *provider.Descriptor, src *voiceSource,
	conns []*store.Connection) ([]Voice, error) {
	to := routing.Target{Provider: d, Alias: d.Alias, Connections: conns}
	voices, query := []Voice{}, src.query
	seen := map[string]bool{}
	for range maxVoicePages {
		res, err := h.Accounts.Send(ctx, &accounts.Call{
			Machine: c.Machine, Request: c.Request, Trace: &c.Trace, Targets: []routing.Target{to},
			Build: func(to *routing.Target, conn *store.Connection, _ *accounts.Attempt) (*accounts.Attempt, error) {
				method, url, err := to.Provider.Endpoint(conn, "voices", "")
				if err != nil {
					return nil, err
				}
				if query != "" {
					url += "?" + query
				}
				req := upstream.Request{Method: method, URL: url, Timeout: 20 * time.Second, MaxBody: maxVoiceBody}
				req.Header.Add("accept", "application/json")
				if src.body != "" {
					req.Method = "POST"
					req.Header.Add("content-type", "application/json")
					req.Body = stream.FromString(src.body)
				}
				return &accounts.Attempt{Request: req}, nil
			},
			Read: func(a *accounts.Attempt, resp *upstream.Response) error {
				raw, err := stream.ReadAll(resp.Body, maxVoiceBody)
				if err == nil {
					err = endpoint.ValidJSON(raw)
				}
				if err != nil {
					return endpoint.BadBody(err)
				}
				a.State = gjson.ParseBytes(raw)
				return nil
			},
		})
		if err != nil {
			var e *apierr.Error
			if errors.As(err, &e) && (e.Status == 401 || e.Status == 403 || e.Status == 404 || e.Status >= 500) {
				shown := apierr.New(502, "upstream_failed", "The provider did not list its voices.")
				shown.Err = err
				return nil, shown
			}
			return nil, err
		}
		to.Connections = []*store.Connection{res.Connection}
		doc := res.Attempt.State.(gjson.Result)
		n := len(voices)
		for _, v := range src.read(doc) {
			if v.ID != "" && !seen[v.own+"/"+v.ID] {
				seen[v.own+"/"+v.ID] = true
				voices = append(voices, v)
			}
		}
		if src.next == nil || len(voices) == n {
			break
		}
		next := src.next(doc, voices)
		if next == "" {
			break
		}
		query = next
	}
	return voices, nil
}
