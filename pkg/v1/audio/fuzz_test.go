package audio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Any answer of a provider becomes an error, or a transcript in every form, audio, or
// voices with ids.
func FuzzAnswers(f *testing.F) {
	for _, folder := range []string{"speech", "transcribers", "voices"} {
		files, _ := filepath.Glob("testdata/" + folder + "/*.json")
		for _, name := range files {
			if b, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, ".golden.json") {
				f.Add(string(b))
			}
		}
	}
	f.Add(`{"text":"a","words":[{"word":"b","start":-1e300,"end":1e300,"speaker":null},{"text":"\u0000"}],"audio":"%%","segments":[[]]}`)
	f.Add(`{"text":"a","duration":1e999,"words":[{"word":"b","start":10e700}]}`) // once an empty answer
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<14 || !gjson.Valid(body) || !utf8.ValidString(body) {
			return
		}
		for _, s := range transcribers {
			if s.read == nil {
				continue
			}
			heard, err := s.read(&transcription{transcriptionForm: &transcriptionForm{}, shape: s}, []byte(body))
			if (heard == nil) == (err == nil) {
				t.Fatalf("%v: %v, %v", s.providers, heard, err)
			}
			if heard == nil {
				continue
			}
			if raw := heard.verbose("transcribe", []string{"word", "segment"}); !gjson.ValidBytes(raw) {
				t.Fatalf("%v: %s", s.providers, raw)
			}
			heard.subtitles("srt")
			heard.subtitles("vtt")
			heard.events(true)
		}
		for _, s := range speakers {
			if s.read != nil {
				s.read([]byte(body), &spoken{shape: s})
			}
		}
		for _, s := range voiceSources {
			if s.read == nil {
				continue
			}
			s.read(gjson.Parse(body))
		}
	})
}
