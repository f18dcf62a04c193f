package rerank

import (
	"strconv"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
)

// maxDocuments is the most documents of one request: what the smallest of the
// providers takes in one call.
const maxDocuments = 1000

// request is a client's request. Spec-gaps, Rerank and moderation.
type request struct {
	model     string
	query     string
	documents []string
	given     []gjson.Result // the documents as the client wrote them
	top       int            // results wanted; 0 is all
	echo      bool           // documents are wanted with the results
}

// parse reads and checks a body. Documents are strings, and objects with a
// string under text.
func parse(body []byte) (*request, error) {
	p := endpoint.Read(body, "model", "query", "documents", "top_n", "return_documents")
	r := &request{model: p.Text("model", true), query: p.Text("query", true)}
	list := p.Value("documents")
	if r.given = list.Array(); !list.IsArray() || len(r.given) == 0 || len(r.given) > maxDocuments {
		p.Fail("documents", "documents must be a list of 1 to "+strconv.Itoa(maxDocuments)+" items")
		return nil, p.Err
	}
	r.documents = make([]string, 0, len(r.given))
	for _, d := range r.given {
		if d.IsObject() {
			d = d.Get("text")
		}
		if d.Type != gjson.String || d.Str == "" {
			p.Fail("documents", "documents must be non-empty strings, or objects with such a text")
			break
		}
		r.documents = append(r.documents, d.Str)
	}
	r.top = min(p.Int("top_n", 0, 1, 1<<31-1), len(r.documents))
	r.echo = p.Bool("return_documents")
	return r, p.Err
}
