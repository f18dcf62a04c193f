package llm

import (
	"slices"

	"github.com/tidwall/gjson"
)

// field is a part of the middle form that has other names in other dialects.
type field uint8

const (
	fieldStop field = iota
	fieldEffort
	fieldUser
	fieldFormat
	fieldParallel
	fieldCache
	fieldThinking
	fieldMaxTokens
	fieldLogprobs
	fieldSearch
	fieldSearchAllowed // sites to search
	fieldSearchBlocked // sites not to search
	fieldDetail
	fieldLevel  // the effort, where it is not the one of fieldEffort
	fieldSchema // prefix of the name and description of a schema
	fields      = iota
)

// fieldNames are the names of these parts in a dialect.
type fieldNames [fields]string

// fieldName returns the name of a part in the client's dialect.
func (q *request) fieldName(f field) string { return q.fields[f] }

// maxDropped is how many fields are named; a client can think of more.
const maxDropped = 32

// drop notes that a field of the client's dialect does not reach the upstream.
func (q *request) drop(name string) {
	if len(q.dropped) >= maxDropped {
		return
	}
	if len(name) > 64 {
		name = name[:64]
	}
	for _, d := range q.dropped {
		if d == name {
			return
		}
	}
	q.dropped = append(q.dropped, name)
}

// dropOthers drops the members of an object that are not among the known.
func (q *request) dropOthers(at string, v gjson.Result, known ...string) {
	forEach(v, func(k, x gjson.Result) bool {
		if x.Type != gjson.Null && !slices.Contains(known, k.Str) {
			q.drop(at + k.Str)
		}
		return true
	})
}

// dropEffort notes that an effort was rounded, or not sent.
func (q *request) dropEffort() {
	if q.effort != "" {
		q.dropField(fieldLevel)
		return
	}
	q.dropField(fieldEffort)
}

func (q *request) dropField(f field) {
	if f == fieldParallel && q.old {
		return // the client did not set it
	}
	q.drop(q.fieldName(f))
}

// dropSet drops the named field when it has a value.
func (q *request) dropSet(name, value string) {
	if value != "" {
		q.drop(name)
	}
}

// dropOpenAI names the fields that only OpenAI's dialects have.
func (q *request) dropOpenAI() {
	q.dropSet("logit_bias", q.logitBias)
	if q.logprobs {
		q.dropField(fieldLogprobs)
	}
	q.dropSet("top_logprobs", q.topLogprobs)
	q.dropSet("user", q.endUser)
	q.dropSet("verbosity", q.verbosity)
	q.dropSet("prompt_cache_key", q.cacheKey)
	if q.store == "true" {
		q.drop("store")
	}
}

// dropDetails notes that only OpenAI's dialects say how closely to look at a
// picture.
func (q *request) dropDetails() {
	for i := range q.messages {
		for j := range q.messages[i].blocks {
			b := &q.messages[i].blocks[j]
			if b.detail != "" && b.detail != "auto" {
				q.dropField(fieldDetail)
			}
			for k := range b.parts {
				if p := &b.parts[k]; p.detail != "" && p.detail != "auto" {
					q.dropField(fieldDetail)
				}
			}
		}
	}
}

// dropCaches notes marks of cached prefixes, which the target makes itself.
func (q *request) dropCaches(blocks []block) {
	for i := range blocks {
		if blocks[i].cache != "" {
			q.dropField(fieldCache)
		}
	}
}

// dropStrict notes that a tool's schema is a hint and no law.
func (q *request) dropStrict(t *tool) {
	if t.strict == "true" {
		q.drop("tools.strict")
	}
}
