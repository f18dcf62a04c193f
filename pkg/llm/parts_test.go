package llm

import (
	"bytes"
	"strings"
	"testing"

	"weir/pkg/llm/ir"
)

// A large request is translated without copying its long texts, to the same bytes.
func TestPartsAreTheRequest(t *testing.T) {
	text := strings.Repeat("A", 1<<20)
	image := "data:image/png;base64," + strings.Repeat("Q", 300<<10)
	for name, tt := range map[string]struct {
		from Dialect
		body string
	}{
		"chat":      {Chat, `{"model":"m","messages":[{"role":"system","content":"` + text[:20<<10] + `"},{"role":"user","content":[{"type":"text","text":"` + text + `ü"},{"type":"text","text":"a\nb ` + text[:50<<10] + `"},{"type":"image_url","image_url":{"url":"` + image + `"}}]},{"role":"user","content":"end"}]}`},
		"messages":  {Messages, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image[22:] + `"}}]}]}`},
		"responses": {Responses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"` + text + `"},{"type":"input_image","image_url":"` + image + `"}]}]}`},
	} {
		for to := Chat; to <= Converse; to++ {
			if to == tt.from {
				continue
			}
			opt := ir.Options{Model: "m", Tools: &ir.Tools{}}
			var asked int64
			want, _, err := Request(tt.from, to, []byte(tt.body), opt)
			opt.Memory = func(n int64) error { asked = n; return nil }
			parts, _, err2 := RequestParts(tt.from, to, []byte(tt.body), opt)
			if err != nil || err2 != nil {
				t.Fatalf("%s to %v: %v, %v", name, to, err, err2)
			}
			got := bytes.Join(parts, nil)
			if !bytes.Equal(got, want) {
				t.Errorf("%s to %v: %d bytes, want %d", name, to, len(got), len(want))
			}
			copied := 0
			for i := 0; i < len(parts); i += 2 {
				copied += len(parts[i])
			}
			if copied > 200<<10 {
				t.Errorf("%s to %v: %d bytes of %d were copied", name, to, copied, len(got))
			}
			if asked < int64(copied) || asked > 1<<20 {
				t.Errorf("%s to %v: memory for %d bytes", name, to, asked)
			}
		}
	}
}
