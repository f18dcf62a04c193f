package videos

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/routing"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
	"weir/pkg/wire/stream"
)

// request is a creation with a JSON body.
type request struct {
	body  []byte
	at    jsonscan.Value // of the model
	asked string         // the model, or ""
}

// parse checks the body and reads its model.
func parse(body []byte) (*request, error) {
	set, err := jsonscan.Read(body, "model")
	if err != nil {
		return nil, endpoint.BadJSON(err)
	}
	r := &request{body: body, at: set.Get("model")}
	if r.at.Kind > jsonscan.Null {
		if r.asked, _, err = set.String("model"); err != nil || r.asked == "" {
			return nil, apierr.Invalid("model", "The model must be a string.")
		}
	}
	return r, nil
}

// model returns the model asked for, "" for a body that is not looked into.
func (x *creation) model() string {
	if x.request == nil {
		return ""
	}
	return x.asked
}

// forModel returns the body with the upstream's model. From alias/model only the
// alias is cut out.
func (r *request) forModel(to *routing.Target) io.ReadCloser {
	if r.asked == "" || r.asked == to.Model {
		return stream.FromBytes(r.body)
	}
	if alias, ok := strings.CutSuffix(r.asked, "/"+to.Model); ok {
		inner := r.body[r.at.Start+1 : r.at.End-1]
		for _, slash := range []string{"/", `\/`} {
			if cut := []byte(alias + slash); bytes.HasPrefix(inner, cut) {
				return endpoint.Splice(r.body, jsonscan.Span{Start: r.at.Start + 1, End: r.at.Start + 1 + len(cut)}, nil)
			}
		}
	}
	return endpoint.Splice(r.body, r.at.Span, jsonscan.Quote(nil, to.Model))
}

// input reads the fields of a creation for a provider of another shape, and
// notes which of them were read. seconds and size, OpenAI's names, are read where
// duration, aspect_ratio and resolution, xAI's, are not there.
type input struct {
	doc      gjson.Result
	words    string
	duration int64
	given    string // the client's name of the duration
	w, h     int    // of size, 0 without one
	sized    sized  // what of size was read
	taken    map[string]bool
}

// sized is a set of the fields that a size stands for.
type sized uint8

const (
	sizedRatio sized = 1 << iota
	sizedResolution
)

// input checks what every provider asks for: a prompt, and a whole number of
// seconds when a duration is given.
func (r *request) input() (*input, error) {
	in := &input{doc: gjson.ParseBytes(r.body), given: "duration", taken: map[string]bool{}}
	if in.words = in.text("prompt"); in.words == "" {
		return nil, apierr.Invalid("prompt", "The prompt is missing.")
	}
	v := in.get("duration")
	if !v.Exists() {
		if v = in.get("seconds"); v.Exists() {
			in.given = "seconds"
		}
	}
	if v.Exists() {
		n, err := strconv.ParseInt(strings.Trim(v.Raw, `"`), 10, 32)
		if err != nil || n < 1 || n > 3600 {
			return nil, apierr.Invalid(in.given, "The duration must be a whole number of seconds.")
		}
		in.duration = n
	}
	in.w, in.h = endpoint.ParseSize(in.get("size").Str)
	in.taken = map[string]bool{"model": true}
	return in, nil
}

func (in *input) get(name string) gjson.Result {
	in.taken[name] = true
	var found gjson.Result
	in.doc.ForEach(func(k, v gjson.Result) bool {
		if k.Str == name && v.Type != gjson.Null {
			found = v
		}
		return true
	})
	return found
}

func (in *input) text(name string) string { return in.get(name).Str }

// ratio returns the aspect ratio: as given, else the nearest to size, else "".
func (in *input) ratio() string {
	in.sized |= sizedRatio
	if given := in.text("aspect_ratio"); given != "" || in.w == 0 {
		return given
	}
	return endpoint.NearestRatio(in.w, in.h, "16:9", "9:16", "1:1", "4:3", "3:4", "21:9")
}

// resolution returns the resolution: as given, else the nearest to size, else "".
func (in *input) resolution() string {
	in.sized |= sizedResolution
	if given := in.text("resolution"); given != "" || in.w == 0 {
		return given
	}
	switch short := min(in.w, in.h); {
	case short < 600:
		return "480p"
	case short < 900:
		return "720p"
	}
	return "1080p"
}

// pixels returns width and height: those of size, else of aspect ratio and resolution,
// 0 when they are not known.
func (in *input) pixels() (w, h int) {
	ratio, resolution := in.ratio(), in.resolution()
	if in.w > 0 && in.text("aspect_ratio")+in.text("resolution") == "" {
		return in.w, in.h
	}
	return pixels(ratio, resolution)
}

func (in *input) prompt() string {
	in.taken["prompt"] = true
	return in.words
}

// seconds returns the duration, 0 when absent.
func (in *input) seconds() int64 {
	in.taken[in.given] = true
	return in.duration
}

// address returns the url of {url}, or of a plain string.
func (in *input) address(name string) string { return addressOf(in.get(name)) }

func addressOf(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Get("url").Str
}

// addresses returns those of a list.
func (in *input) addresses(name string) (out []string) {
	for _, v := range in.get(name).Array() {
		if a := addressOf(v); a != "" {
			out = append(out, a)
		}
	}
	return out
}

// noResolution notes that the resolution that was read is not sent.
func (in *input) noResolution() {
	in.taken["resolution"] = false
	in.sized &^= sizedResolution
}

// read reports whether a field was read. A size was if both its ratio and its resolution
// were.
func (in *input) read(name string) bool {
	return in.taken[name] || name == "size" && in.w > 0 && in.sized == sizedRatio|sizedResolution
}

// rest adds the fields that were not read to a body whose further fields are
// the model's own.
func (in *input) rest(to map[string]any) {
	in.doc.ForEach(func(k, v gjson.Result) bool {
		if k.Str == "user" || k.Str == "safety_identifier" {
			return true // no model's own
		}
		if _, set := to[k.Str]; !set && !in.read(k.Str) {
			in.taken[k.Str] = true
			to[k.Str] = raw(v)
		}
		return true
	})
}

// dropped returns the fields that were not read.
func (in *input) dropped() (names []string) {
	in.doc.ForEach(func(k, v gjson.Result) bool {
		if !in.read(k.Str) && v.Type != gjson.Null {
			names = append(names, k.Str)
		}
		return true
	})
	return names
}

// pixels returns width and height of an aspect ratio at a resolution such as
// 720p, whose number is the shorter side; 0 when either is not known.
func pixels(ratio, resolution string) (w, h int) {
	short, err := strconv.Atoi(strings.TrimSuffix(strings.ToLower(resolution), "p"))
	a, b, ok := strings.Cut(ratio, ":")
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	if err != nil || !ok || errA != nil || errB != nil || x <= 0 || y <= 0 || short <= 0 || x > 100 || y > 100 ||
		short > 10000 {
		return 0, 0
	}
	even := func(n int) int { return (n + 1) / 2 * 2 }
	if x >= y {
		return even(short * x / y), even(short)
	}
	return even(short), even(short * y / x)
}
