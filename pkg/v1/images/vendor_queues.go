package images

import (
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/endpoint/download"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
)

// failed is a job that came to nothing.
func failed(message string) error {
	return endpoint.Said(apierr.New(400, "generation_failed", "The provider could not make the image."), message)
}

// fal is fal's queue (see its video shape): POST {model} → {request_id}, then
// status and result under the first two parts of the model's path.
var fal = shape{
	providers: []string{"fal"}, edits: true,
	create: func(in *input, _ string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"prompt": prompt}
		if w, h := in.size(); w > 0 {
			body["image_size"] = map[string]int{"width": w, "height": h}
		}
		set(body, "num_images", in.get("n"))
		format := in.str("output_format")
		set(body, "output_format", format)
		switch images := in.images(); len(images) {
		case 0:
		case 1:
			body["image_url"] = images[0]
			body["image_urls"] = images
		default:
			body["image_urls"] = images
		}
		set(body, "mask_url", in.str("mask"))
		in.rest(body)
		return jsonBody(body)
	},
	read: func(raw []byte, _ string) (*made, error) {
		return &made{job: gjson.GetBytes(raw, "request_id").Str}, nil
	},
	poll: func(m *made, model string, step int) *plan {
		app := strings.Join(strings.SplitN(model, "/", 3)[:min(2, strings.Count(model, "/")+1)], "/")
		p := &plan{endpoint: "status", model: app, parts: []provider.Part{{Name: "request_id", Value: m.job}}}
		if step > 0 {
			p.endpoint = "result"
		}
		return p
	},
	state: func(raw []byte, step int) (*made, error) {
		doc := gjson.ParseBytes(raw)
		if step == 0 {
			return &made{more: doc.Get("status").Str == "COMPLETED"}, nil
		}
		m := &made{}
		for _, i := range append(doc.Get("images").Array(), doc.Get("image")) {
			if u := i.Get("url").Str; u != "" {
				m.images = append(m.images, image{url: u})
			}
		}
		if len(m.images) == 0 {
			return nil, failed(doc.Get("detail").Str)
		}
		return m, nil
	},
}

// bfl is Black Forest Labs' queue: POST {model} → {id, polling_url}; the
// polling_url is asked as it was given.
var bfl = shape{
	providers: []string{"bfl"}, edits: true,
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"prompt": prompt}
		if r := in.str("aspect_ratio"); r != "" || strings.Contains(model, "kontext") || strings.Contains(model, "ultra") {
			set(body, "aspect_ratio", in.ratio()) // these models have no width and height
		} else if w, h := in.size(); w > 0 {
			body["width"], body["height"] = w, h
		}
		for i, a := range in.images() {
			if _, data, ok := download.DataURI(a); ok {
				a = data
			}
			name := "input_image"
			if i > 0 {
				name += "_" + string(rune('1'+i))
			}
			if i < 8 {
				body[name] = a
			}
		}
		set(body, "output_format", in.str("output_format"))
		if in.doc.Get("n").Int() == 1 {
			in.get("n")
		}
		for _, name := range []string{"seed", "safety_tolerance", "prompt_upsampling", "guidance", "steps", "mask"} {
			set(body, name, in.get(name))
		}
		return jsonBody(body)
	},
	read: func(raw []byte, _ string) (*made, error) {
		doc := gjson.ParseBytes(raw)
		if u := doc.Get("polling_url").Str; u != "" {
			return &made{job: u}, nil
		}
		return &made{job: doc.Get("id").Str}, nil
	},
	poll: func(m *made, _ string, _ int) *plan {
		if strings.Contains(m.job, "://") {
			return &plan{endpoint: "result", url: m.job, parts: []provider.Part{{Name: "id", Value: "x"}}}
		}
		return &plan{endpoint: "result", parts: []provider.Part{{Name: "id", Value: m.job}}}
	},
	state: func(raw []byte, _ int) (*made, error) {
		doc := gjson.ParseBytes(raw)
		switch status := doc.Get("status").Str; status {
		case "Ready":
			return &made{images: []image{{url: doc.Get("result.sample").Str}}}, nil
		case "Error", "Failed", "Task not found":
			return nil, failed("")
		case "Request Moderated", "Content Moderated":
			return nil, apierr.New(400, "content_filter", "The provider's moderation blocked the image.")
		}
		return &made{}, nil
	},
}

// replicate is Replicate's queue: POST models/{owner}/{name}/predictions
// {input}, or POST predictions {version, input} for a model with its version,
// → {id, status, output}; an answer may be done at once.
var replicate = shape{
	providers: []string{"replicate"}, edits: true,
	route: func(model string) string {
		if strings.Contains(model, ":") {
			return "predictions"
		}
		return ""
	},
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"prompt": prompt}
		set(body, "aspect_ratio", in.ratio())
		set(body, "num_outputs", in.get("n"))
		if images := in.images(); len(images) > 0 {
			body["image"], body["input_image"] = images[0], images[0]
		}
		in.rest(body)
		if strings.Contains(model, ":") {
			return jsonBody(map[string]any{"version": model, "input": body})
		}
		return jsonBody(map[string]any{"input": body})
	},
	read: func(raw []byte, _ string) (*made, error) {
		m, err := replicateState(raw)
		if err != nil {
			return nil, err
		}
		m.job = ""
		if len(m.images) == 0 {
			m.job = gjson.GetBytes(raw, "id").Str
		}
		return m, nil
	},
	poll: func(m *made, _ string, _ int) *plan {
		return &plan{endpoint: "status", parts: []provider.Part{{Name: "id", Value: m.job}}}
	},
	state: func(raw []byte, _ int) (*made, error) { return replicateState(raw) },
}

func replicateState(raw []byte) (*made, error) {
	doc := gjson.ParseBytes(raw)
	switch doc.Get("status").Str {
	case "failed", "canceled", "aborted":
		return nil, failed(doc.Get("error").Str)
	case "succeeded":
		m := &made{}
		out := doc.Get("output")
		for _, o := range append(out.Array(), gjson.Result{}) {
			if o.Type == gjson.String {
				m.images = append(m.images, image{url: o.Str})
			}
		}
		if len(m.images) == 0 {
			return nil, failed("")
		}
		return m, nil
	}
	return &made{}, nil
}
