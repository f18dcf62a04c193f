package llm_test

import (
	"math"
	"strings"
	"testing"

	"weir/pkg/llm"
)

// The counts are those of o200k_base; the second number is the allowed error.
func TestEstimateIsWithinErrorBound(t *testing.T) {
	tests := []struct {
		name, text string
		times      int
		tokens     float64
		within     float64
	}{
		{"english", "It was a bright cold day in April, and the clocks were striking thirteen. Winston Smith, his chin nuzzled into his breast in an effort to escape the vile wind, slipped quickly through the glass doors of Victory Mansions, though not quickly enough to prevent a swirl of gritty dust from entering along with him.", 5, 316, 0.05},
		{"german", "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller staatlichen Gewalt. Das Deutsche Volk bekennt sich darum zu unverletzlichen und unveräußerlichen Menschenrechten als Grundlage jeder menschlichen Gemeinschaft.", 5, 256, 0.1},
		{"chinese", "人工智能是计算机科学的一个分支,它企图了解智能的实质,并生产出一种新的能以人类智能相似的方式做出反应的智能机器。该领域的研究包括机器人、语言识别、图像识别、自然语言处理和专家系统等。", 5, 330, 0.2},
		{"japanese", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。", 5, 305, 0.2},
		{"russian", "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. Всё смешалось в доме Облонских. Жена узнала, что муж был в связи с бывшею в их доме француженкою-гувернанткой.", 5, 315, 0.2},
	}
	for _, tt := range tests {
		body := `{"messages":[{"role":"user","content":"` + strings.Repeat(tt.text, tt.times) + `"}]}`
		got := float64(llm.Estimate([]byte(body)))
		if off := math.Abs(got/tt.tokens - 1); off > tt.within+0.03 {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.tokens)
		}
	}
}

func TestEstimateCountsWhatModelReads(t *testing.T) {
	png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	big := "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAYAAAAfFcSJ" + strings.Repeat("AAAA", 10000)
	tests := []struct {
		name, body string
		d          llm.Dialect
		min, max   int64
	}{
		{"nothing", `{"messages":[]}`, llm.Messages, 0, 0},
		{"no_fields", `{}`, llm.Messages, 0, 0},
		{"a_word", `{"messages":[{"role":"user","content":"Hello"}]}`, llm.Messages, 5, 5},
		{"system", `{"system":"Hello","messages":[]}`, llm.Messages, 1, 1},
		{"system_blocks", `{"system":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}],"messages":[]}`, llm.Messages, 1, 1},
		{"tools", `{"tools":[{"name":"get_weather","description":"Weather of a city","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}],"messages":[]}`, llm.Messages, 325, 345},
		{"the_same_tools_in_chat", `{"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],"messages":[]}`, llm.Chat, 325, 345},
		{"the_same_tools_in_gemini", `{"tools":[{"functionDeclarations":[{"name":"get_weather","description":"Weather of a city","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}}}}]}],"contents":[]}`, llm.Gemini, 325, 345},
		{"calls", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_123456789","name":"now","input":{"a":"one two three"}}]}]}`, llm.Messages, 10, 14},
		{"results_within_results", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"one two three"}]}]}]}`, llm.Messages, 7, 7},
		{"thinking_without_its_signature", `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"one two three","signature":"` + strings.Repeat("x", 5000) + `"}]}]}`, llm.Messages, 7, 7},
		{"small_image", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}]}`, llm.Messages, 264, 264},
		{"large_image", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + big + `"}}]}]}`, llm.Chat, 1604, 1604},
		{"large_image_of_low_detail", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"detail":"low","url":"data:image/png;base64,` + big + `"}}]}]}`, llm.Chat, 264, 264},
		{"image_by_url", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]}`, llm.Responses, 1604, 1604},
		{"image_of_gemini", `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}]}`, llm.Gemini, 264, 264},
		{"a_document", `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("AAAA", 40000) + `"}}]}]}`, llm.Messages, 6004, 6004},
		{"a_text_document", `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"one two three"}}]}]}`, llm.Messages, 7, 7},
		{"a_string_of_input", `{"input":"one two three"}`, llm.Responses, 7, 7},
	}
	for _, tt := range tests {
		if got := llm.Estimate([]byte(tt.body)); got < tt.min || got > tt.max {
			t.Errorf("%s: got %d, want %d to %d", tt.name, got, tt.min, tt.max)
		}
	}
}
