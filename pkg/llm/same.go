package llm

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// adaptRequest prepares a request for an upstream of the client's own dialect. The
// bytes pass; only this is changed:
//
//   - model;
//   - chat: what a provider of the table is known to refuse or to call
//     otherwise (Deviations), and the fields for reasoning and signatures that
//     weir adds to answers, for upstreams that do not know them; for any other
//     compatible server only what it has refused by name (Options.Refuses);
//   - Messages: thoughts that another provider signed, Claude Code's attribution
//     unless the upstream is Anthropic's, and for hosted Claude anthropic_version
//     in place of the model;
//   - Gemini: signatures of other providers;
//   - all thoughts, once the upstream has refused the signature of one
//     (Options.NoThoughts).
//
// The body is read once, by jsonscan.ReadMarked before or here.
func adaptRequest(d Dialect, body []byte, opt *ir.Options) ([]byte, []string, error) {
	if opt.Marked == nil {
		if err := markRequest(d, body, opt); err != nil {
			return nil, nil, err
		}
	}
	p := ir.NewPatch(body, opt.Marked)
	if name := upstreamModel(make([]byte, 0, 128), d, opt); name == nil {
	} else if opt.ModelAt.End > 0 {
		p.Body = jsonscan.Splice(body, opt.ModelAt, name)
	} else {
		p.Set("model", string(name))
	}
	p = adapt(d, p, opt)
	if p.Err != nil {
		return nil, nil, p.Err
	}
	return p.Body, p.Dropped, nil
}

// adaptParts is adaptRequest with the result in parts: if only the model changes, they
// refer to body, which is not copied.
func adaptParts(d Dialect, body []byte, opt *ir.Options) ([][]byte, []string, error) {
	if opt.Marked == nil {
		if err := markRequest(d, body, opt); err != nil {
			return nil, nil, err
		}
	}
	if opt.ModelAt.End > 0 {
		p := adapt(d, ir.NewPatch(body, opt.Marked), opt)
		name := upstreamModel(nil, d, opt)
		if name != nil && p.Err == nil && len(p.Body) == len(body) && &p.Body[0] == &body[0] {
			return [][]byte{body[:opt.ModelAt.Start], name, body[opt.ModelAt.End:]}, p.Dropped, nil
		}
	}
	out, dropped, err := adaptRequest(d, body, opt)
	return [][]byte{out}, dropped, err
}

// upstreamModel appends to dst the JSON text that replaces the model of a request's
// body. It returns nil if the body has none for this upstream.
func upstreamModel(dst []byte, d Dialect, opt *ir.Options) []byte {
	switch {
	case dialects[d].modelInURL && opt.ModelAt.End == 0:
		return nil
	case dialects[d].modelInURL:
		return jsonscan.Quote(dst, "models/"+opt.Model)
	case opt.DeviationsOrDefault().Anthropic == "" || d != Messages:
		return jsonscan.Quote(dst, opt.Model)
	}
	return nil
}

// adapt applies what the upstream needs besides its model.
func adapt(d Dialect, p ir.Patch, opt *ir.Options) ir.Patch {
	if forget := dialects[d].forget; opt.NoThoughts && forget != nil {
		forget(&p)
	}
	limitOutput(d, &p, opt)
	if adapt := dialects[d].adapt; adapt != nil {
		p = adapt(p, *opt)
	}
	if opt.LongUser && dialects[d].openAI && (!opt.DeviationsOrDefault().Passes || opt.Vendor) {
		p.ShortUser(opt.DeviationsOrDefault().UserLimit())
	}
	return p
}

// outputLimits are the fields that limit the output tokens, the one that is set last.
var outputLimits = [...][]string{
	Chat: {"max_tokens", "max_completion_tokens"}, Responses: {"max_output_tokens"}, Messages: {"max_tokens"},
	Gemini: {
		"generationConfig.max_output_tokens", "generation_config.max_output_tokens", "generation_config.maxOutputTokens",
		"generationConfig.maxOutputTokens",
	},
}

// limitOutput sets Options.OutputLimit in a request without a limit, or with a higher one.
func limitOutput(d Dialect, p *ir.Patch, opt *ir.Options) {
	if opt.OutputLimit <= 0 {
		return
	}
	names, stated := outputLimits[d], false
	for _, name := range names {
		n := p.Get(name).Int()
		if stated = stated || n > 0; n > opt.OutputLimit {
			p.Set(name, strconv.FormatInt(opt.OutputLimit, 10))
			p.Note(limited(name, opt.OutputLimit))
		}
	}
	if stated {
		return
	}
	name := names[len(names)-1]
	if v := opt.DeviationsOrDefault(); d == Chat && v.MaxTokens != "" {
		name = v.MaxTokens
	} else if d == Gemini && p.Has("generation_config") {
		name = names[len(names)-2]
	}
	p.Set(name, strconv.FormatInt(opt.OutputLimit, 10))
	p.Note(limited(name, opt.OutputLimit))
}

// limited returns how a limit that the gateway sets is named among the dropped fields.
func limited(name string, n int64) string { return name + "=" + strconv.FormatInt(n, 10) }

// Marks returns the strings for which a request of a client's dialect is searched:
// see Options.Marked.
func Marks(d Dialect) []string { return dialects[d].marks }

// markRequest checks a body and looks for the marks of its dialect.
func markRequest(d Dialect, body []byte, opt *ir.Options) error {
	m := &jsonscan.Marked{}
	if err := jsonscan.Mark(body, &jsonscan.Marks{Strings: Marks(d)}, m); err != nil {
		return apierr.Invalid("", "The body is not valid JSON.")
	}
	root := gjson.Parse(ir.View(body))
	if !root.IsObject() {
		return apierr.Invalid("", "The body must be a JSON object.")
	}
	if model := root.Get("model"); model.Index > 0 && model.Raw != "" {
		opt.ModelAt = jsonscan.Span{Start: model.Index, End: model.Index + len(model.Raw)}
	}
	opt.Marked = m
	return nil
}
