package audio

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/provider"
)

// voiceSource is where the voices of a provider come from
// (docs/reference/api-shapes.md, 13).
type voiceSource struct {
	providers []string
	fixed     []Voice // a list that no endpoint returns
	query     string
	body      string // of a POST; "" asks by the row's method
	read      func(doc gjson.Result) []Voice
	// next returns the query of the page after doc, "" after the last page.
	next func(doc gjson.Result, all []Voice) string
}

// names makes voices of which only the names are known.
func names(gender string, list string) (out []Voice) {
	for _, n := range strings.Fields(list) {
		out = append(out, Voice{ID: n, Name: n, Gender: gender})
	}
	return out
}

var voiceSources = [...]*voiceSource{
	{providers: []string{"openai", "azure"},
		fixed: names("", "alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar")},
	{providers: []string{"gemini", "vertex"}, fixed: names("", `Zephyr Puck Charon Kore Fenrir Leda Orus Aoede Callirrhoe Autonoe
		Enceladus Iapetus Umbriel Algieba Despina Erinome Algenib Rasalgethi Laomedeia Achernar Alnilam Schedar Gacrux
		Pulcherrima Achird Zubenelgenubi Vindemiatrix Sadachbia Sadaltager Sulafat`)},
	{
		providers: []string{"elevenlabs"}, query: "page_size=100",
		read: each("voices", func(v gjson.Result) Voice {
			lang := cmp.Or(v.Get("labels.language").Str, v.Get("verified_languages.0.language").Str)
			return Voice{ID: v.Get("voice_id").Str, Name: v.Get("name").Str, Lang: lang, Gender: v.Get("labels.gender").Str,
				PreviewURL: v.Get("preview_url").Str, own: v.Get("high_quality_base_model_ids.0").Str}
		}),
		next: func(doc gjson.Result, _ []Voice) string {
			if t := doc.Get("next_page_token").Str; t != "" && doc.Get("has_more").Bool() {
				return "page_size=100&next_page_token=" + queryValue(t)
			}
			return ""
		},
	},
	{
		providers: []string{"deepgram"},
		read: each("tts", func(v gjson.Result) Voice {
			id := v.Get("canonical_name").Str
			gender := ""
			for _, tag := range v.Get("metadata.tags").Array() {
				switch tag.Str {
				case "masculine":
					gender = "male"
				case "feminine":
					gender = "female"
				}
			}
			return Voice{ID: id, Name: v.Get("name").Str, Lang: v.Get("languages.0").Str, Gender: gender,
				PreviewURL: v.Get("metadata.sample").Str, own: id}
		}),
	},
	{
		providers: []string{"cartesia"}, query: "limit=100",
		read: each("data", func(v gjson.Result) Voice {
			return Voice{ID: v.Get("id").Str, Name: v.Get("name").Str, Lang: v.Get("language").Str, Gender: v.Get("gender").Str,
				PreviewURL: v.Get("preview_file_url").Str}
		}),
		next: func(doc gjson.Result, all []Voice) string {
			if !doc.Get("has_more").Bool() || len(all) == 0 {
				return ""
			}
			return "limit=100&starting_after=" + queryValue(all[len(all)-1].ID)
		},
	},
	{
		providers: []string{"inworld"},
		read: each("voices", func(v gjson.Result) Voice {
			gender := ""
			for _, tag := range v.Get("tags").Array() {
				if tag.Str == "male" || tag.Str == "female" {
					gender = tag.Str
				}
			}
			return Voice{ID: v.Get("voiceId").Str, Name: v.Get("displayName").Str, Lang: v.Get("langCode").Str, Gender: gender}
		}),
	},
	{
		providers: []string{"mistral"}, query: "page_size=100",
		read: each("items", func(v gjson.Result) Voice {
			return Voice{ID: v.Get("id").Str, Name: v.Get("name").Str, Lang: v.Get("languages.0").Str,
				Gender: v.Get("gender").Str}
		}),
		next: func(doc gjson.Result, _ []Voice) string {
			page := doc.Get("page").Int()
			if page >= doc.Get("total_pages").Int() {
				return ""
			}
			return "page_size=100&page=" + strconv.FormatInt(page+1, 10)
		},
	},
	{
		providers: []string{"together"},
		read: func(doc gjson.Result) (out []Voice) {
			for _, m := range doc.Get("data").Array() {
				for _, v := range m.Get("voices").Array() {
					id := cmp.Or(v.Get("id").Str, v.Get("name").Str)
					out = append(out, Voice{ID: id, Name: v.Get("name").Str, own: m.Get("model").Str})
				}
			}
			return out
		},
	},
	{
		providers: []string{"minimax"}, body: `{"voice_type":"all"}`,
		read: func(doc gjson.Result) (out []Voice) {
			for _, list := range []string{"system_voice", "voice_cloning", "voice_generation"} {
				for _, v := range doc.Get(list).Array() {
					out = append(out, Voice{ID: v.Get("voice_id").Str, Name: v.Get("voice_name").Str})
				}
			}
			return out
		},
	},
	{
		providers: []string{"xai"},
		read: each("voices", func(v gjson.Result) Voice {
			return Voice{ID: v.Get("voice_id").Str, Name: v.Get("name").Str, Lang: v.Get("language").Str,
				Gender: v.Get("gender").Str}
		}),
	},
	{
		providers: []string{"zai"},
		read: each("voice_list", func(v gjson.Result) Voice {
			return Voice{ID: v.Get("voice").Str, Name: v.Get("voice_name").Str, PreviewURL: v.Get("download_url").Str}
		}),
	},
}

// voiceSourceOf returns the source of a provider's voices, or nil.
func voiceSourceOf(d *provider.Descriptor) *voiceSource {
	for _, s := range voiceSources {
		for _, id := range s.providers {
			if id == d.ID {
				return s
			}
		}
	}
	return nil
}

// each reads an array of voices.
func each(path string, one func(gjson.Result) Voice) func(gjson.Result) []Voice {
	return func(doc gjson.Result) (out []Voice) {
		for _, v := range doc.Get(path).Array() {
			out = append(out, one(v))
		}
		return out
	}
}
