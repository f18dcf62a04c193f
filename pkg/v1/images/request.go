package images

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/endpoint/upload"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/jsonscan"
)

// request is a creation as JSON: the client's own, or what its form says.
type request struct {
	body  []byte
	at    jsonscan.Value // of the model
	asked string
	doc   gjson.Result // of the body, once input has been asked for
	// sources are the images of a form, as data: addresses.
	sources []string
	inline
}

// parse checks the body and reads its model.
func parse(body []byte) (*request, error) {
	set, err := jsonscan.Read(body, "model", "prompt", "n", "response_format", "stream")
	if err != nil {
		return nil, endpoint.BadJSON(err)
	}
	r := &request{body: body, at: set.Get("model")}
	if r.asked, _, err = set.String("model"); err != nil || r.asked == "" {
		return nil, apierr.Invalid("model", "model is required.")
	}
	if _, _, err := set.Int("n", 1, 10); err != nil {
		return nil, apierr.Invalid("n", "n must be a whole number from 1 to 10.")
	}
	return r, nil
}

// forModel returns the body with the upstream's model.
func (r *request) forModel(model string) io.ReadCloser {
	return endpoint.Splice(r.body, r.at.Span, jsonscan.Quote(nil, model))
}

func (r *request) text(name string) string {
	if r == nil {
		return ""
	}
	return gjson.GetBytes(r.body, name).Str
}

// streams reports whether the client asked for events.
func (r *request) streams() bool {
	v := gjson.GetBytes(r.body, "stream")
	return v.Type == gjson.True || v.Str == "true"
}

// ofForm reads a held form into a request, its images too: for providers that
// take JSON.
func ofForm(u *upload.Upload) (*request, error) {
	values := map[string]any{}
	r := &request{asked: u.Model}
	r.form = u
	for i := range u.Form.Fields {
		r.avoid(u.Form.Fields[i].Value)
	}
	for i := range u.Form.Fields {
		f := &u.Form.Fields[i]
		name := strings.TrimSuffix(f.Name, "[]")
		switch {
		case !f.File && name == "n":
			n, err := strconv.Atoi(f.Value)
			if err != nil || n < 1 || n > 10 {
				return nil, apierr.Invalid("n", "n must be a whole number from 1 to 10.")
			}
			values[name] = n
		case !f.File:
			values[name] = f.Value
		case name == "image" || name == "mask":
			mime := f.ContentType
			if !strings.HasPrefix(mime, "image/") || strings.ContainsAny(mime, ",; ") {
				mime = "image/png"
			}
			address := "data:" + mime + ";base64," + r.part(f)
			if name == "mask" {
				values["mask"] = address
			} else {
				r.sources = append(r.sources, address)
			}
		}
	}
	if r.size > maxInline {
		return nil, apierr.New(413, "request_too_large", "The provider of this model takes images of up to %d MiB in all.",
			maxInline/4*3>>20)
	}
	var err error
	r.body, err = json.Marshal(values)
	return r, err
}

// input reads the fields of a creation for a provider of another shape, and
// notes which of them were read.
type input struct {
	*request
	taken map[string]bool
}

func (r *request) input() *input {
	if !r.doc.Exists() {
		r.doc = gjson.ParseBytes(r.body)
		r.avoid(r.text("prompt"))
	}
	return &input{r, map[string]bool{"model": true, "response_format": true, "stream": true}}
}

func (in *input) get(name string) gjson.Result {
	in.taken[name] = true
	if v := in.doc.Get(name); v.Type != gjson.Null {
		return v
	}
	return gjson.Result{}
}

func (in *input) str(name string) string { return in.get(name).Str }

func (in *input) prompt() (string, error) {
	p := in.str("prompt")
	if p == "" {
		return "", apierr.Invalid("prompt", "The prompt is missing.")
	}
	return p, nil
}

// images returns the addresses of the images to change: those of the form, or
// image and images of the JSON, each {url}, {image_url} or a string.
func (in *input) images() (out []string) {
	out = append(out, in.sources...)
	for _, name := range []string{"image", "images", "image_url"} {
		v := in.get(name)
		list := []gjson.Result{v}
		if v.IsArray() {
			list = v.Array()
		}
		for _, one := range list {
			for _, a := range []string{one.Str, one.Get("url").Str, one.Get("image_url").Str, one.Get("image_url.url").Str} {
				if a != "" {
					out = append(out, in.short(a))
					break
				}
			}
		}
	}
	return out
}

// size returns width and height of size, 0 when it is "auto" or absent.
func (in *input) size() (w, h int) { return endpoint.ParseSize(in.str("size")) }

// ratio returns the aspect ratio: as given, else the nearest to size, else "".
func (in *input) ratio() string {
	given := in.str("aspect_ratio")
	w, h := in.size()
	if given != "" || w == 0 {
		return given
	}
	return endpoint.NearestRatio(w, h, "1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "21:9", "5:4", "4:5")
}

// rest adds the fields that were not read to a body whose further fields are
// the model's own.
func (in *input) rest(to map[string]any) {
	in.doc.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "partial_images": // answers of another shape come whole
			return true
		case "user", "safety_identifier": // no model's own
			return true
		}
		if _, set := to[k.Str]; !set && !in.taken[k.Str] {
			in.taken[k.Str] = true
			to[k.Str] = json.RawMessage(v.Raw)
		}
		return true
	})
}

func (in *input) dropped() (names []string) {
	in.doc.ForEach(func(k, v gjson.Result) bool {
		if !in.taken[k.Str] && v.Type != gjson.Null {
			names = append(names, k.Str)
		}
		return true
	})
	return names
}
