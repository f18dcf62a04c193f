package upstream

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var word = regexp.MustCompile(`[\p{L}\p{N}]+`)

// words returns the different words of a text in small letters, in their order.
func words(text string) []string {
	var out []string
	for _, w := range word.FindAllString(strings.ToLower(text), -1) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func speech(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Input string `json:"input"`
	}
	if decode(w, r, &q) {
		w.Header().Set("Content-Type", "audio/wav")
		_, _ = w.Write(tones(q.Input)) // fails if the caller has left
	}
}

// tones returns a WAV file with a short tone for each word of a text.
func tones(text string) []byte {
	const rate, each = 16_000, 16_000 * 14 / 100 // samples per second, per tone
	list := words(text)
	list = list[:min(len(list), 60)]
	pcm := make([]byte, 0, 2*each*max(len(list), 1))
	for _, word := range list {
		digest := sha256.Sum256([]byte(word))
		hz := 220 * math.Pow(2, float64(digest[0]%18)/12)
		for t := range each {
			fade := float64(min(t, each-t)) / (each / 2)
			sample := 9000 * fade * math.Sin(2*math.Pi*hz*float64(t)/rate)
			pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(math.Round(sample))))
		}
	}
	pcm = pcm[:cap(pcm)] // a text without words is silence
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), uint32(36+len(pcm)))
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = le.AppendUint16(le.AppendUint16(b, 1), 1) // PCM, one channel
	b = le.AppendUint32(le.AppendUint32(b, rate), 2*rate)
	b = le.AppendUint16(le.AppendUint16(b, 2), 16) // bytes and bits of a sample
	b = le.AppendUint32(append(b, "data"...), uint32(len(pcm)))
	return append(b, pcm...)
}

// images answers generations (JSON) and edits (JSON or a form).
func images(w http.ResponseWriter, r *http.Request) {
	q := struct {
		Prompt string `json:"prompt"`
		N      int    `json:"n"`
	}{N: 1}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		q.Prompt = r.FormValue("prompt")
		if n, err := strconv.Atoi(r.FormValue("n")); err == nil {
			q.N = n
		}
	} else if !decode(w, r, &q) {
		return
	}
	var data []object
	for i := range min(max(q.N, 1), 4) {
		data = append(data, object{"b64_json": base64.StdEncoding.EncodeToString(picture(fmt.Sprint(i, q.Prompt)))})
	}
	reply(w, http.StatusOK, object{"created": time.Now().Unix(), "data": data})
}

// picture returns a PNG file with waves in the colours of a prompt.
func picture(prompt string) []byte {
	const size = 256
	h := sha256.Sum256([]byte(prompt))
	shade := func(x, y, c int) uint8 {
		wave := math.Sin(float64(x)*float64(1+h[c]&7)/60+float64(h[c+3])) + math.Cos(float64(y)*float64(1+h[c+6]&7)/60+float64(h[c+9]))
		return uint8(128 + 60*wave)
	}
	img := image.NewRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			img.SetRGBA(x, y, color.RGBA{shade(x, y, 0), shade(x, y, 1), shade(x, y, 2), 255})
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // writes to memory
	return b.Bytes()
}

// rerank orders documents by the share of the query's words that they have.
func rerank(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model     string            `json:"model"`
		Query     string            `json:"query"`
		Documents []json.RawMessage `json:"documents"`
		Top       *int              `json:"top_n"`
	}
	if !decode(w, r, &q) {
		return
	}
	type result struct {
		Index int     `json:"index"`
		Score float64 `json:"relevance_score"`
	}
	asked := words(q.Query)
	results := []result{}
	for i, d := range q.Documents {
		n := 0
		for _, w := range words(textOf(d)) {
			if slices.Contains(asked, w) {
				n++
			}
		}
		results = append(results, result{i, float64(n) / float64(max(len(asked), 1))})
	}
	slices.SortStableFunc(results, func(a, b result) int { return cmp.Compare(b.Score, a.Score) })
	if q.Top != nil {
		results = results[:min(max(*q.Top, 0), len(results))]
	}
	reply(w, http.StatusOK, object{"model": q.Model, "results": results})
}
