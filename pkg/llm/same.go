package llm

import (
	"github.com/tidwall/gjson"

	"weir/pkg/wire/jsonscan"
)

// same prepares a request for an upstream of the client's own dialect. The
// bytes pass; only this is changed:
//
//   - model;
//   - chat: what a provider of the table is known to refuse or to call
//     otherwise (Deviations), and the fields for reasoning and signatures that
//     weir adds to answers, for upstreams that do not know them; for any other
//     compatible server only what it has refused by name (Options.Refuses);
//   - Messages: thoughts that another provider signed, and for hosted Claude
//     anthropic_version in place of the model.
func same(d Dialect, body []byte, root gjson.Result, opt *Options) ([]byte, []string, error) {
	p := patch{body: body}
	if opt.deviations().Anthropic == "" || d != Messages {
		model := root.Get("model")
		if model.Index > 0 && model.Raw != "" {
			p.body = jsonscan.Splice(body, jsonscan.Span{Start: model.Index, End: model.Index + len(model.Raw)}, jsonscan.Quote(nil, opt.Model))
		} else {
			p.set("model", quoted(opt.Model))
		}
	}
	if adapt := dialects[d].adapt; adapt != nil {
		p = adapt(p, *opt)
	}
	if opt.LongUser && dialects[d].openAI && (!opt.deviations().Passes || opt.Vendor) {
		p.shortUser(opt.deviations().userLimit())
	}
	if p.err != nil {
		return nil, nil, p.err
	}
	return p.body, p.dropped, nil
}
