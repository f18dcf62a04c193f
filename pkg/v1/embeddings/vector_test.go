package embeddings

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/rand"
	"strconv"
	"strings"
	"testing"
)

func pack(v ...float32) string {
	var b []byte
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return `"` + base64.StdEncoding.EncodeToString(b) + `"`
}

func TestAppendVector(t *testing.T) {
	tests := []struct {
		name string
		in   item
		want form
		out  string // "" is an error
	}{
		{"floats_pass", item{raw: []byte(`[ 0.1000, 1e-3 ]`)}, floats, `[ 0.1000, 1e-3 ]`},
		{"base64_passes", item{raw: []byte(pack(1, 2)), form: float32le}, float32le, pack(1, 2)},
		{"floats_to_base64", item{raw: []byte(`[0.5, -2 ,0,1e-3,3.4028235e38]`)}, float32le, pack(0.5, -2, 0, 1e-3, math.MaxFloat32)},
		{"minus_zero", item{raw: []byte(`[-0.0]`)}, float32le, pack(float32(math.Copysign(0, -1)))},
		{"base64_to_floats", item{raw: []byte(pack(0.5, -2, 1e-7, 16777216, 0.1)), form: float32le}, floats, `[0.5,-2,1e-07,1.6777216e+07,0.1]`},
		{"escaped_base64", item{raw: []byte(strings.ReplaceAll(pack(-1, -1.5, 2e30), "/", `\/`)), form: float32le, escaped: true}, floats, `[-1,-1.5,2e+30]`},
		{"escaped_base64_stays_base64", item{raw: []byte(`"\u0041ACAPw=="`), form: float32le, escaped: true}, float32le, `"AACAPw=="`},
		{"unpadded_base64", item{raw: []byte(`"AACAPw"`), form: float32le}, floats, `[1]`},
		{"int8_to_floats", item{raw: []byte(`"AAF/gP8="`), form: int8s}, floats, `[0,1,127,-128,-1]`},
		{"int8_to_base64", item{raw: []byte(`"AAF/gP8="`), form: int8s}, float32le, pack(0, 1, 127, -128, -1)},
		{"not_base64", item{raw: []byte(`"%%%%"`), form: float32le}, floats, ""},
		{"half_a_float", item{raw: []byte(`"AAAA"`), form: float32le}, floats, ""},
		{"nan", item{raw: []byte(pack(float32(math.NaN()))), form: float32le}, floats, ""},
		{"infinite", item{raw: []byte(pack(float32(math.Inf(1)))), form: float32le}, floats, ""},
		{"too_large_a_number", item{raw: []byte(`[1e400]`)}, float32le, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := appendVector(nil, nil, &tt.in, tt.want)
			if err != nil {
				out = nil
			}
			if string(out) != tt.out {
				t.Errorf("got %s (%v), want %s", out, err, tt.out)
			}
		})
	}
}

// sameFloat compares with the standard library, which rounds once.
func sameFloat(t *testing.T, s string) {
	t.Helper()
	want, err := strconv.ParseFloat(s, 32)
	got, ok := parseFloat32([]byte(s))
	if ok != (err == nil) || ok && math.Float32bits(got) != math.Float32bits(float32(want)) {
		t.Fatalf("%s: got %v %v, want %v %v", s, got, ok, float32(want), err)
	}
}

func TestParseFloat32RoundsOnce(t *testing.T) {
	for _, s := range strings.Fields("0 -0 0.0 1 -1 0.1 1e0 1E+5 1e-5 123456789012345678 1234567890123456789 12345678901234567890 " +
		"0.00000000000000000000001 1e22 1e23 1e-22 1e-23 1e-45 7e-46 1.4e-45 1.1754943e-38 1.17549435e-38 3.4028235e38 3.4028236e38 1e39 -1e400 1e-400 " +
		"16777217 16777219 16777217.0000000001 0.500000029802322387695312 0.5000000298023223876953125 0.5000000298023224 1.00000005960464477539 " +
		"9007199254740993 0.1000 00000000000000000000000001e5 1e99999999999999999999") {
		if s[0] == '0' && len(s) > 1 && s[1] == '0' {
			continue
		}
		sameFloat(t, s)
	}
	r := rand.New(rand.NewSource(1))
	for range 200_000 {
		f := math.Float32frombits(r.Uint32())
		if f != f || math.IsInf(float64(f), 0) {
			continue
		}
		sameFloat(t, strconv.FormatFloat(float64(f), 'g', -1, 32))
		sameFloat(t, strconv.FormatFloat(float64(f), 'g', 17, 64))
		// Close to the middle between two floats.
		mid := (float64(f) + float64(math.Nextafter32(f, 2*f))) / 2
		sameFloat(t, strconv.FormatFloat(mid, 'g', 17, 64))
		sameFloat(t, strconv.FormatFloat(math.Nextafter(mid, 0), 'g', 17, 64))
		sameFloat(t, strconv.FormatFloat(r.NormFloat64()/30, 'f', -1, 64))
	}
}

func FuzzParseFloat32(f *testing.F) {
	f.Add("0.123456789012345678")
	f.Add("-1e-40")
	f.Fuzz(func(t *testing.T, s string) {
		for i := range len(s) {
			if !strings.ContainsRune("0123456789.eE+-", rune(s[i])) {
				return
			}
		}
		if s != "" && valid("["+s+"]") {
			sameFloat(t, s)
		}
	})
}

func benchVector(n int) []byte {
	r := rand.New(rand.NewSource(1))
	b := []byte{'['}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, r.NormFloat64()/30, 'g', -1, 64)
	}
	return append(b, ']')
}

func BenchmarkFloatsToBase64(b *testing.B) {
	v := item{raw: benchVector(1536)}
	var out, buf []byte
	b.ReportAllocs()
	for b.Loop() {
		out, buf, _ = appendVector(out[:0], buf, &v, float32le)
	}
}

func BenchmarkBase64ToFloats(b *testing.B) {
	in := item{raw: benchVector(1536)}
	text, _, _ := appendVector(nil, nil, &in, float32le)
	v := item{raw: text, form: float32le}
	var out, buf []byte
	b.ReportAllocs()
	for b.Loop() {
		out, buf, _ = appendVector(out[:0], buf, &v, floats)
	}
}

func valid(doc string) bool {
	_, err := parse([]byte(`{"model":"m","input":"a","x":` + doc + `}`))
	return err == nil
}
