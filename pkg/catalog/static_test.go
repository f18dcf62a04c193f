package catalog

import (
	"strings"
	"testing"
)

func TestEverySectionIsSortedAndReadable(t *testing.T) {
	if len(text) > 200_000 {
		t.Errorf("the catalogue has %d bytes, want at most 200000", len(text))
	}
	total, end := 0, 0
	for i := range sections {
		s := &sections[i]
		if s.from != end {
			t.Errorf("%s: the section begins at %d, want %d", s.alias, s.from, end)
		}
		end = s.to
		last := ""
		for _, line := range strings.Split(strings.TrimSuffix(s.body(), "\n"), "\n") {
			total++
			if line <= last {
				t.Errorf("%s: %q does not sort after %q", s.alias, line, last)
			}
			last = line
			f := strings.Split(line, "\t")
			if f[0] == "" || strings.ContainsAny(f[0], " ") || len(f) < 2 || len(f[1]) != 1 || !strings.Contains("leitsvmrow", f[1]) || len(f) > 11 {
				t.Errorf("%s: unreadable line %q", s.alias, line)
			}
			m := parse(line)
			if m.Price != "" {
				if r, ok := m.Price.Rates(Terms{}); !ok || r == NoRates() || m.Kind == LLM && (r[PerInput] < 0 || r[PerOutput] < 0) {
					t.Errorf("%s: price of %q", s.alias, line)
				}
			}
			got := Lookup(s.alias, m.ID)
			found := false
			for _, g := range got {
				found = found || g == m
			}
			if !found {
				t.Errorf("Lookup(%q, %q) = %v, want it to contain %v", s.alias, m.ID, got, m)
			}
		}
		if n := len(Models(s.alias)); n != strings.Count(s.body(), "\n") {
			t.Errorf("Models(%q) has %d models", s.alias, n)
		}
	}
	if end != len(text) {
		t.Errorf("the index covers %d of %d bytes", end, len(text))
	}
	if total < 1400 || len(sections) < 30 {
		t.Errorf("%d models over %d providers, want 1400 over 30", total, len(sections))
	}
}

func TestStaticFacts(t *testing.T) {
	m := Lookup("anthropic", "claude-opus-5-5")
	if len(m) != 1 || m[0].Kind != LLM || m[0].Context != 1_000_000 || m[0].MaxOutput != 128_000 || m[0].Name != "Claude Opus 5.5" {
		t.Fatalf("claude-opus-5-5 = %+v", m)
	}
	if m[0].Price != "4/20/0.2/5/8" {
		t.Errorf("price = %v", m[0].Price)
	}
	if m[0].Input != Text|Images || m[0].Output != Text {
		t.Errorf("modalities = %v %v", string(m[0].Input.AppendJSON(nil)), string(m[0].Output.AppendJSON(nil)))
	}
	if got := string(m[0].Caps.AppendJSON(nil)); got != `{"tools":true,"reasoning":true,"vision":true}` {
		t.Errorf("capabilities = %s", got)
	}
	if d := Lookup("openai", "gpt-5-mini")[0].Deprecated; d != "2026-12-11 gpt-6.1-terra" {
		t.Errorf("gpt-5-mini is deprecated: %q", d)
	}
	if d := Lookup("vertex", "claude-opus-4-1@20250805")[0].Deprecated; d != "-" {
		t.Errorf("claude-opus-4-1 is deprecated: %q", d)
	}
	if e := Lookup("openai", "text-embedding-3-large"); len(e) != 1 || e[0].Kind != Embedding || e[0].Dimensions != 3072 || e[0].Output != Vectors {
		t.Errorf("text-embedding-3-large = %+v", e)
	}
}

func TestRetiredAndSubscriptionModelsAreAbsent(t *testing.T) {
	for _, gone := range [][2]string{
		{"openai", "dall-e-3"}, {"openai", "gpt-image-1"}, {"openai", "sora-2"},
		{"groq", "llama-3.3-70b-versatile"}, {"xai", "grok-3"}, {"cohere", "command-r"},
	} {
		if got := Lookup(gone[0], gone[1]); got != nil {
			t.Errorf("%v is listed: %v", gone, got)
		}
	}
	for _, alias := range Aliases() {
		for _, bad := range []string{"copilot", "codex", "kimi-coding", "opencode", "github", "qwen-token"} {
			if strings.Contains(alias, bad) {
				t.Errorf("subscription provider %q is listed", alias)
			}
		}
	}
	if strings.Contains(text, "://") {
		t.Error("the catalogue contains an address")
	}
}

func TestIDMayHaveTwoKinds(t *testing.T) {
	const id = "google/gemini-nano-banana-2.1"
	if got := Lookup("openrouter", id); len(got) != 2 || got[0].Kind != Image || got[1].Kind != LLM {
		t.Errorf("Lookup = %+v", got)
	}
	if k, ok := KindOf("openrouter", id); k != LLM || !ok {
		t.Errorf("KindOf = %v %v, want its chat kind", k, ok)
	}
}

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		alias, id string
		want      Kind
		ok        bool
	}{
		{"openai", "whisper-1", STT, true},
		{"openai", "tts-1", TTS, true},
		{"xai", "grok-imagine-video", Video, true},
		{"cohere", "rerank-v3.5", Rerank, true},
		{"el", "music_v1", Music, true},
		{"mistral", "mistral-ocr-latest", ImageToText, true},
		{"openai", "whisper", "", false}, // a prefix of an id
		{"openai", "whisper-1x", "", false},
		{"openai", "", "", false},
		{"openai", "~~~", "", false}, // sorts after all
		{"nobody", "whisper-1", "", false},
	} {
		if k, ok := KindOf(tt.alias, tt.id); k != tt.want || ok != tt.ok {
			t.Errorf("KindOf(%q, %q) = %q %v, want %q %v", tt.alias, tt.id, k, ok, tt.want, tt.ok)
		}
	}
}

func TestFindNamesEveryProviderInTableOrder(t *testing.T) {
	var got []string
	for _, f := range Find("claude-opus-5-5") {
		got = append(got, f.Alias)
	}
	if want := "anthropic vertex"; strings.Join(got, " ") != want {
		t.Errorf("Find = %v, want %s", got, want)
	}
	if got := Find(""); got != nil {
		t.Errorf("Find of nothing = %v", got)
	}
}

func TestInferKindFollowsTheRuleInOrder(t *testing.T) {
	for id, want := range map[string]Kind{
		"My-EMBED-image":          Embedding, // embed comes first
		"gpt-4o-audio-preview":    TTS,
		"speech-image":            TTS,
		"voice-x":                 TTS,
		"kokoro-TTS":              TTS,
		"gpt-image-9":             Image,
		"imagen-4":                Image,
		"DALL-E-9":                Image,
		"dalle":                   Image,
		"black-forest-labs/FLUX2": Image,
		"sdxl-turbo":              Image,
		"sd-3":                    Image,
		"stable-diffusion-xl":     Image,
		"whisper-1":               LLM, // the rule knows no stt
		"rerank-9":                LLM,
		"gpt-9":                   LLM,
		"":                        LLM,
	} {
		if got := InferKind(id); got != want {
			t.Errorf("InferKind(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestCapsMergeKnownCapabilities(t *testing.T) {
	var a, b Caps
	a.Set(Tools, true)
	a.Set(Vision, true)
	a.Set(Reasoning, true)
	b.Set(Tools, true)
	b.Set(Vision, false)
	// Reasoning of b is unknown, so nothing is known of the group.
	if got := string(a.Shared(b).AppendJSON(nil)); got != `{"tools":true,"vision":false}` {
		t.Errorf("Shared = %s", got)
	}
	if got := string(b.Over(a).AppendJSON(nil)); got != `{"tools":true,"reasoning":true,"vision":false}` {
		t.Errorf("Over = %s", got)
	}
}

func BenchmarkKindOf(b *testing.B) {
	for b.Loop() {
		KindOf("openrouter", "openai/gpt-4.1")
	}
}

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		Find("claude-opus-5-5")
	}
}

func BenchmarkParseAll(b *testing.B) {
	for b.Loop() {
		for _, a := range Aliases() {
			Models(a)
		}
	}
}

func TestUpstreamIDKeepsTheVendorsName(t *testing.T) {
	for _, tt := range [][3]string{
		{"nvidia", "nemotron-3-ultra-550b-a55b", "nvidia/nemotron-3-ultra-550b-a55b"},
		{"nvidia", "openai/gpt-oss-20b", "openai/gpt-oss-20b"},
		{"nvidia", "unheard-of", "unheard-of"},
		{"openrouter", "openai/gpt-4.1", "openai/gpt-4.1"},
		{"nobody", "x", "x"},
	} {
		if got := UpstreamID(tt[0], tt[1]); got != tt[2] {
			t.Errorf("UpstreamID(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

// TestInferKindFollowsSpecification compares with the rule as it is
// written there, over ids put together from pieces of its words.
func TestInferKindFollowsSpecification(t *testing.T) {
	rule := func(id string) Kind {
		id = strings.ToLower(id)
		for _, r := range []struct {
			kind  Kind
			words string
		}{
			{Embedding, "embed"}, {TTS, "tts speech audio voice"},
			{Image, "image imagen dall-e dalle flux sdxl sd- stable-diffusion"},
		} {
			for _, w := range strings.Fields(r.words) {
				if strings.Contains(id, w) {
					return r.kind
				}
			}
		}
		return LLM
	}
	pieces := []string{"", "em", "bed", "Embed", "tt", "s", "TTS", "speech", "spee", "audio", "au", "voice", "vo", "image", "imagen", "Im", "age",
		"dall", "-e", "e", "dalle", "DALL-E", "flux", "fl", "sdxl", "sd", "-", "SD-", "stable-diffusion", "stable", "x", "é", "/"}
	for _, a := range pieces {
		for _, b := range pieces {
			for _, c := range pieces {
				id := a + b + c
				if got, want := InferKind(id), rule(id); got != want {
					t.Fatalf("InferKind(%q) = %q, want %q", id, got, want)
				}
			}
		}
	}
}

func TestKnownVideo(t *testing.T) {
	for id, want := range map[string]bool{
		"veo-3.1-generate-preview": true, "google/veo-3.1-generate-preview": true, "grok-imagine-video": true, "gen4_turbo": true,
		"fal-ai/luma-dream-machine/ray-2": true, "MiniMax-Hailuo-02": true, "happyhorse_1_0": true, "aleph2": false, "wan2.6-t2v": true,
		"video-llama": false, "veo-99": false, "gpt-4o": false, "": false, "v": false,
	} {
		if got := (*Update)(nil).KnownVideo(id); got != want {
			t.Errorf("KnownVideo(%q) = %v, want %v", id, got, want)
		}
	}
	for _, alias := range Aliases() {
		for _, m := range Models(alias) {
			if m.Kind == Video && !looksVideo(m.ID) {
				t.Logf("%s/%s does not look like a video model", alias, m.ID)
			}
		}
	}
}
