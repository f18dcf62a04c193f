package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONHasEveryClauseOfAPrice(t *testing.T) {
	for price, want := range map[Price]string{
		"4/20/0.4/5/8": `{"input":4,"output":20,"cache_read":0.4,"cache_write":5,"cache_write_1h":8}`,
		"5/30/0.5 >272000=10/45/1 @flex=2/10 @flex>272000=4/20/": `{"input":5,"output":30,"cache_read":0.5,"variants":[` +
			`{"above_input_tokens":272000,"input":10,"output":45,"cache_read":1},{"service_tier":"flex","input":2,"output":10},` +
			`{"above_input_tokens":272000,"service_tier":"flex","input":4,"output":20}]}`,
		"audioInput=1 audioOutput=20 imageInput=10 imageOutput=40 audioCacheRead=0.4 imageCacheRead=0.5 audioInput@flex=0.5": `{"audio_input":1,"audio_output":20,` +
			`"image_input":10,"image_output":40,"audio_cache_read":0.4,"image_cache_read":0.5}`, // the first that fits counts
		"audioInput@flex=0.5 audioInput=1":                                   `{"audio_input":1,"variants":[{"options":["flex"],"audio_input":0.5}]}`,
		"image@hd@1024x1792=0.12 image@hd=0.08 image=0.04":                   `{"image":0.04,"variants":[{"options":["hd","1024x1792"],"image":0.12},{"options":["hd"],"image":0.08}]}`,
		"second@1080p=0.4":                                                   `{"variants":[{"options":["1080p"],"second":0.4}]}`,
		"minute=0.006 character=15 request=0.005":                            `{"character":15,"second":0.0001,"request":0.005}`,
		"search=0.01 grounded=0.035 maps=0.025 fileSearch=0.0025 code=0.005": `{"search":0.01,"grounded":0.035,"maps":0.025,"file_search":0.0025,"code":0.005}`,
		"search=0.01 search@preview=0.025 code@1g=0.03":                      `{"search":0.01,"variants":[{"options":["1g"],"code":0.03}]}`,
		"1/2 >0200=3/4 image@\x01\"=1":                                       `{"input":1,"output":2,"variants":[{"above_input_tokens":200,"input":3,"output":4},{"options":["\u0001\""],"image":1}]}`,
		"0/0":                                                                `{"input":0,"output":0}`,
	} {
		if got := string(price.AppendJSON(nil)); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s\n%s\nwant\n%s", price, got, want)
		}
	}
}

// Each clause of the catalogue's prices, and of those of tools, is in the JSON.
func TestJSONOfEveryPriceOfTheBuild(t *testing.T) {
	for _, alias := range Aliases() {
		for _, m := range Models(alias) {
			p := m.Price.With(ToolPrice(alias, m.ID))
			if p == "" {
				continue
			}
			got := p.AppendJSON(nil)
			var form struct{ Variants []map[string]any }
			if err := json.Unmarshal(got, &form); err != nil {
				t.Fatalf("%s/%s: %s: %v", alias, m.ID, got, err)
			}
			special := 0
			for _, clause := range strings.Fields(string(m.Price)) {
				if key, _ := cutClause(clause); strings.ContainsAny(key, "@>") {
					special++
				}
			}
			if len(form.Variants) < special {
				t.Errorf("%s/%s: %s of %s", alias, m.ID, got, p)
			}
		}
	}
}
