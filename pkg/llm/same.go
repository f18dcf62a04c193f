package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/llm/ir"
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
//   - Messages: thoughts that another provider signed, and for hosted Claude
//     anthropic_version in place of the model.
func adaptRequest(d Dialect, body []byte, root gjson.Result, opt *ir.Options) ([]byte, []string, error) {
	p := ir.Patch{Body: body}
	if opt.DeviationsOrDefault().Anthropic == "" || d != Messages {
		model := root.Get("model")
		if model.Index > 0 && model.Raw != "" {
			p.Body = jsonscan.Splice(body, jsonscan.Span{Start: model.Index, End: model.Index + len(model.Raw)}, jsonscan.Quote(nil, opt.Model))
		} else {
			p.Set("model", ir.Quote(opt.Model))
		}
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
