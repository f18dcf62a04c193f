package llm

import (
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
	switch {
	case dialects[d].modelInURL:
		if opt.ModelAt.End > 0 {
			p.Body = jsonscan.Splice(body, opt.ModelAt, jsonscan.Quote(nil, "models/"+opt.Model))
		}
	case opt.DeviationsOrDefault().Anthropic == "" || d != Messages:
		if opt.ModelAt.End > 0 {
			name := make([]byte, 0, 128)
			p.Body = jsonscan.Splice(body, opt.ModelAt, jsonscan.Quote(name, opt.Model))
		} else {
			p.Set("model", ir.Quote(opt.Model))
		}
	}
	if forget := dialects[d].forget; opt.NoThoughts && forget != nil {
		forget(&p)
	}
	if adapt := dialects[d].adapt; adapt != nil {
		p = adapt(p, *opt)
	}
	if opt.LongUser && dialects[d].openAI && (!opt.DeviationsOrDefault().Passes || opt.Vendor) {
		p.ShortUser(opt.DeviationsOrDefault().UserLimit())
	}
	if p.Err != nil {
		return nil, nil, p.Err
	}
	return p.Body, p.Dropped, nil
}

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
