package refresh

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/catalog"
)

// Bounds of the models that a document adds.
const (
	maxModels     = 5000
	maxModelText  = 512 << 10 // bytes of the lines as they are stored
	maxName       = 100       // bytes of a name
	maxTokens     = 20_000_000
	maxDimensions = 65_536
	// minTokens are the fewest tokens of a chat model: fewer would turn every request
	// away, or cut every answer short.
	minTokens = 2048
	// maxLimitChange is the largest factor between a limit of the static catalogue and
	// its correction.
	maxLimitChange = 8
)

// addition is a model that the static catalogue lacks.
type addition struct {
	alias string
	model catalog.Model
}

// addModel adds a model. Of one that the static catalogue has it takes the limits. One that
// is out of bounds is counted only; ok is false if a value of it could not be read.
func (d *document) addModel(alias string, m catalog.Model, ok bool) {
	// With the alias in front, the id of a model that is used without being in the
	// catalogue would become another one.
	twice := strings.HasPrefix(m.ID, alias+"/") && !catalog.HasPrefixed(alias)
	switch {
	case isBuiltIn(alias, m.ID):
		if ok {
			d.correct(alias, &m)
		}
	case ok && !twice && inBounds(&m) && len(d.models) < maxRows:
		m.ID, m.Name = strings.Clone(m.ID), strings.Clone(m.Name) // not the whole document
		d.models = append(d.models, addition{alias, m})
	default:
		d.refused++
	}
}

// correction has the limits of a chat model of the static catalogue that differ, 0 for one
// that does not.
type correction struct {
	alias, id          string
	context, maxOutput int
}

// correct notes the limits of a chat model of the static catalogue. Those that are out of
// bounds are counted only.
func (d *document) correct(alias string, m *catalog.Model) {
	built := catalog.Lookup(alias, m.ID)
	i := slices.IndexFunc(built, func(b catalog.Model) bool { return b.Kind == catalog.LLM })
	if i < 0 || len(d.limits) >= maxRows {
		return
	}
	corrected := func(was, is int) int {
		switch {
		case is == 0 || is == was:
			return 0
		case is < minTokens || is > maxTokens || was > 0 && (is > maxLimitChange*was || was > maxLimitChange*is):
			d.refused++
			return 0
		}
		return is
	}
	c := correction{alias, strings.Clone(m.ID), corrected(built[i].Context, m.Context),
		corrected(built[i].MaxOutput, m.MaxOutput)}
	if c.context != 0 || c.maxOutput != 0 {
		d.limits = append(d.limits, c)
	}
}

// limitLines returns the text of the corrected limits in the order of
// catalog.Update.LimitText, and their number. They are left out
// if they do not fit into room, which is in bytes.
func (d *document) limitLines(room int) (string, int) {
	slices.SortStableFunc(d.limits, func(a, b correction) int {
		return cmp.Or(strings.Compare(a.alias, b.alias), strings.Compare(a.id, b.id))
	})
	d.limits = slices.CompactFunc(d.limits, func(a, b correction) bool { return a.alias == b.alias && a.id == b.id })
	var b []byte
	for _, c := range d.limits {
		b = catalog.AppendLimits(b, c.alias, c.id, c.context, c.maxOutput)
	}
	if stored(string(b)) > room {
		return "", 0
	}
	return string(b), len(d.limits)
}

// isBuiltIn reports whether the static catalogue has a model that is listed under this id.
// A list omits a leading alias (catalog.UpstreamID).
func isBuiltIn(alias, id string) bool {
	_, known := catalog.KindOf(alias, catalog.UpstreamID(alias, strings.TrimPrefix(id, alias+"/")))
	return known
}

func inBounds(m *catalog.Model) bool {
	fits := func(n, least, most int) bool { return n == 0 || least <= n && n <= most }
	least := 1
	switch m.Kind {
	case catalog.LLM:
		least = minTokens
	case catalog.Embedding, catalog.Image, catalog.TTS, catalog.STT, catalog.Video, catalog.Music, catalog.Rerank,
		catalog.ImageToText:
	default:
		return false
	}
	return validID(m.ID) && len(m.Name) <= maxName && utf8.ValidString(m.Name) &&
		strings.IndexFunc(m.Name, func(c rune) bool { return !unicode.IsPrint(c) }) < 0 &&
		fits(m.Context, least, maxTokens) && fits(m.MaxOutput, least, maxTokens) && fits(m.Dimensions, 1, maxDimensions)
}

// validID reports whether an id is a path of the characters that ids of models have. The
// names search and fetch are those of web services.
func validID(id string) bool {
	if last := id[strings.LastIndexByte(id, '/')+1:]; last == "search" || last == "fetch" {
		return false
	}
	for part := range strings.SplitSeq(id, "/") {
		if strings.Trim(part, ".") == "" {
			return false
		}
	}
	return len(id) <= maxID && strings.IndexFunc(id, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._:/@~+", c))
	}) < 0
}

// lines returns the text of the models in the order of catalog.Update.ModelText, their
// number, and the number of those that do not fit into room, which is in bytes.
func (d *document) lines(room int) (text string, added, refused int) {
	slices.SortStableFunc(d.models, func(a, b addition) int {
		if c := strings.Compare(a.alias, b.alias); c != 0 {
			return c
		}
		return strings.Compare(a.model.ID, b.model.ID)
	})
	same := func(a, b addition) bool { return a.alias == b.alias && a.model.ID == b.model.ID }
	d.models = slices.CompactFunc(d.models, same)
	var b []byte
	for i := range d.models {
		before := len(b)
		b = catalog.AppendModel(b, d.models[i].alias, &d.models[i].model)
		room -= stored(string(b[before:]))
		if i >= maxModels || room < 0 {
			b, refused = b[:before], len(d.models)-i
			break
		}
		added++
	}
	return string(b), added, refused
}

// ownModel reads a model of weir's own format, which has the names of GET /v1/models/info:
//
//	{"kind","name"?,"context_length"?,"max_completion_tokens"?,"dimensions"?,
//	 "input_modalities"?:[],"output_modalities"?:[],"capabilities"?:{}}
func ownModel(id string, v gjson.Result) (m catalog.Model, ok bool) {
	m = catalog.Model{ID: id, Kind: catalog.Kind(v.Get("kind").Str)}
	m.Input, m.Output = modalities(v.Get("input_modalities")), modalities(v.Get("output_modalities"))
	v.Get("capabilities").ForEach(func(name, has gjson.Result) bool {
		if c := catalog.CapOf(name.Str); c != 0 && has.IsBool() {
			m.Caps.Set(c, has.Bool())
		}
		return true
	})
	ok = readSize(v.Get("context_length"), &m.Context) && readSize(v.Get("max_completion_tokens"), &m.MaxOutput) &&
		readSize(v.Get("dimensions"), &m.Dimensions) && readName(v.Get("name"), id, &m.Name)
	return m, ok
}

// vendorModel reads a model of models.dev:
//
//	{"name","reasoning","tool_call","structured_output"?,"modalities":{"input":[],"output":[]},
//	 "limit":{"context","output"},"status"?:"alpha"|"beta"|"deprecated"}
//
// taken is false for a model that is not meant to be added: one that its vendor withdraws,
// or that is called in another way than those of the catalogue.
func vendorModel(id string, v gjson.Result) (m catalog.Model, taken, ok bool) {
	for _, word := range [...]string{"realtime", "-live-", "moderation"} {
		if strings.Contains(strings.ToLower(id), word) {
			return m, false, false
		}
	}
	m, ok = catalog.Model{ID: id}, true
	var stated catalog.Caps
	flag := func(c catalog.Cap, v gjson.Result) {
		if v.IsBool() {
			stated.Set(c, v.Bool())
		}
	}
	taken = true
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "name":
			ok = readName(v, id, &m.Name) && ok
		case "reasoning":
			flag(catalog.Reasoning, v)
		case "tool_call":
			flag(catalog.Tools, v)
		case "structured_output":
			flag(catalog.StructuredOutputs, v)
		case "modalities":
			m.Input, m.Output = modalities(v.Get("input")), modalities(v.Get("output"))
		case "limit":
			ok = readSize(v.Get("context"), &m.Context) && readSize(v.Get("output"), &m.MaxOutput) && ok
		case "status":
			taken = v.Str != "deprecated"
		}
		return true
	})
	switch m.Kind = vendorKind(&m); m.Kind {
	case "":
		return m, false, false
	case catalog.Embedding:
		m.Output, m.MaxOutput = 0, 0 // models.dev states the size of the vectors
	case catalog.Image:
		m.Caps.Set(catalog.ImageOutput, true)
	case catalog.LLM:
		m.Caps = stated
		m.Caps.Set(catalog.Vision, m.Input&catalog.Images != 0)
		m.Caps.Set(catalog.PDF, m.Input&catalog.File != 0)
		m.Caps.Set(catalog.AudioInput, m.Input&catalog.Audio != 0)
		m.Caps.Set(catalog.VideoInput, m.Input&catalog.Videos != 0)
		m.Caps.Set(catalog.AudioOutput, m.Output&catalog.Audio != 0)
	}
	return m, taken, ok
}

// vendorKind returns the kind of a model of models.dev, which states none, or "" where it
// does not follow from what the model reads and writes.
func vendorKind(m *catalog.Model) catalog.Kind {
	inferred := catalog.InferKind(m.ID)
	switch {
	case m.Output == 0:
		return ""
	case strings.Contains(strings.ToLower(m.ID), "rerank"):
		return catalog.Rerank
	case inferred == catalog.Embedding:
		return catalog.Embedding
	case m.Output&catalog.Images != 0 && (m.Output&catalog.Text == 0 || inferred == catalog.Image):
		return catalog.Image
	case m.Output&catalog.Text != 0 && m.Input&catalog.Text != 0:
		return catalog.LLM
	case m.Output == catalog.Text && m.Input == catalog.Audio:
		return catalog.STT
	case m.Output&catalog.Videos != 0:
		return catalog.Video
	case m.Output == catalog.Audio && inferred == catalog.TTS:
		return catalog.TTS
	}
	return ""
}

// modalities reads an array of names. Those that are not known are left out.
func modalities(v gjson.Result) (m catalog.Modality) {
	if v.IsArray() {
		v.ForEach(func(_, name gjson.Result) bool {
			m |= catalog.ModalityOf(name.Str)
			return true
		})
	}
	return m
}

// readSize reads a whole number; one that is missing, null or 0 is unknown. It reports
// whether the value is such a number.
func readSize(v gjson.Result, to *int) bool {
	if v.Type == gjson.Null {
		return true
	}
	if v.Type != gjson.Number || v.Num != math.Trunc(v.Num) || v.Num < 0 || v.Num > maxTokens {
		return false
	}
	*to = int(v.Num)
	return true
}

// readName reads the name for people, which is "" where it is the id. It reports whether
// the value is a text.
func readName(v gjson.Result, id string, to *string) bool {
	if v.Str != id {
		*to = v.Str
	}
	return v.Type == gjson.String || v.Type == gjson.Null
}
