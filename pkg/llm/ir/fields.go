package ir

import (
	"slices"

	"github.com/tidwall/gjson"
)

// field is a part of a request whose name differs by dialect.
type field uint8

// The fields.
const (
	FieldStop field = iota
	FieldEffort
	FieldUser
	FieldFormat
	FieldParallel
	FieldCache
	FieldThinking
	FieldMaxTokens
	FieldLogprobs
	FieldSearch
	FieldSearchAllowed // sites to search
	FieldSearchBlocked // sites not to search
	FieldDetail
	FieldLevel  // the level of effort, if FieldEffort names another field
	FieldSchema // prefix of the name and description of a schema
	fields      = iota
)

// FieldNames are the names of fields in a dialect.
type FieldNames [fields]string

// FieldName returns the name of a field in the client's dialect.
func (q *Request) FieldName(f field) string { return q.Fields[f] }

// maxDropped is the maximum number of dropped fields that are named; a client
// can send any number.
const maxDropped = 32

// Drop notes that a field of the client's dialect is not sent to the upstream.
func (q *Request) Drop(name string) {
	if len(q.Dropped) >= maxDropped {
		return
	}
	if len(name) > 64 {
		name = name[:64]
	}
	for _, d := range q.Dropped {
		if d == name {
			return
		}
	}
	q.Dropped = append(q.Dropped, name)
}

// DropOthers drops the members of an object that are not among known.
func (q *Request) DropOthers(at string, v gjson.Result, known ...string) {
	Each(v, func(k, x gjson.Result) bool {
		if x.Type != gjson.Null && !slices.Contains(known, k.Str) {
			q.Drop(at + k.Str)
		}
		return true
	})
}

// DropEffort notes that an effort was rounded, or not sent.
func (q *Request) DropEffort() {
	if q.Effort != "" {
		q.DropField(FieldLevel)
		return
	}
	q.DropField(FieldEffort)
}

// DropField drops a field under its name in the client's dialect.
func (q *Request) DropField(f field) {
	if f == FieldParallel && q.Legacy {
		return // the client did not set it
	}
	q.Drop(q.FieldName(f))
}

// DropIfSet drops the named field if value is not empty.
func (q *Request) DropIfSet(name, value string) {
	if value != "" {
		q.Drop(name)
	}
}

// DropOpenAI drops the fields that only OpenAI's dialects have.
func (q *Request) DropOpenAI() {
	q.DropIfSet("logit_bias", q.LogitBias)
	if q.Logprobs {
		q.DropField(FieldLogprobs)
	}
	q.DropIfSet("top_logprobs", q.TopLogprobs)
	q.DropIfSet("user", q.EndUser)
	q.DropIfSet("verbosity", q.Verbosity)
	q.DropIfSet("prompt_cache_key", q.CacheKey)
	if q.Store == "true" {
		q.Drop("store")
	}
}

// DropDetails drops the detail of images, which only OpenAI's dialects have.
func (q *Request) DropDetails() {
	for i := range q.Messages {
		for j := range q.Messages[i].Blocks {
			b := &q.Messages[i].Blocks[j]
			if b.Detail != "" && b.Detail != "auto" {
				q.DropField(FieldDetail)
			}
			for k := range b.Parts {
				if p := &b.Parts[k]; p.Detail != "" && p.Detail != "auto" {
					q.DropField(FieldDetail)
				}
			}
		}
	}
}

// DropCaches drops the marks of cached prefixes, for an upstream that caches by
// itself.
func (q *Request) DropCaches(blocks []Block) {
	for i := range blocks {
		if blocks[i].Cache != "" {
			q.DropField(FieldCache)
		}
	}
}

// DropStrict drops strict of a tool whose schema the upstream does not enforce.
func (q *Request) DropStrict(t *Tool) {
	if t.Strict == "true" {
		q.Drop("tools.strict")
	}
}
