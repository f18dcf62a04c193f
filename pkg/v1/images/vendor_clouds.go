package images

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// cloudflare is Workers AI. Some models answer with the image itself:
//
//	POST run/{model} {prompt, …} → {result{image: base64}, success}, or image/…
var cloudflare = shape{
	providers: []string{"cloudflare"},
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"prompt": prompt}
		if strings.HasSuffix(model, "flux-1-schnell") { // it has one size
			set(body, "steps", in.get("steps"))
		} else {
			if w, h := in.size(); w > 0 {
				body["width"], body["height"] = w, h
			}
			for _, name := range []string{"negative_prompt", "guidance", "num_steps"} {
				set(body, name, in.get(name))
			}
		}
		set(body, "seed", in.get("seed"))
		in.single()
		return jsonBody(body)
	},
	read: func(raw []byte, contentType string) (*made, error) {
		if strings.HasPrefix(contentType, "image/") {
			return &made{images: one(base64.StdEncoding.EncodeToString(raw), contentType)}, nil
		}
		return &made{images: one(gjson.GetBytes(raw, "result.image").Str, "image/jpeg")}, nil
	},
}

// dashScope is Model Studio, whose image models answer as chat models:
//
//	POST multimodal-generation/generation {model, input{messages[{role, content[{image}, {text}]}]}, parameters{size, n, …}}
//	  → {output.choices[].message.content[{image: url}]}
var dashScope = shape{
	providers: []string{"dashscope"}, edits: true,
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		var content []any
		for _, a := range in.images() {
			content = append(content, map[string]string{"image": a})
		}
		content = append(content, map[string]string{"text": prompt})
		how := map[string]any{}
		if size := in.str("size"); strings.Contains(size, "x") {
			how["size"] = strings.Replace(size, "x", "*", 1)
		}
		for _, name := range []string{"n", "negative_prompt", "seed", "prompt_extend", "watermark"} {
			set(how, name, in.get(name))
		}
		return jsonBody(map[string]any{
			"model": model, "parameters": how,
			"input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": content}}},
		})
	},
	read: func(raw []byte, _ string) (*made, error) {
		m := &made{}
		for _, c := range gjson.GetBytes(raw, "output.choices").Array() {
			for _, p := range c.Get("message.content").Array() {
				if u := p.Get("image").Str; u != "" {
					m.images = append(m.images, image{url: u})
				}
			}
		}
		return m, nil
	},
}

// bedrock is Amazon's Nova Canvas:
//
//	POST model/{model}/invoke {taskType TEXT_IMAGE, textToImageParams{text}, imageGenerationConfig{width, height, numberOfImages, …}}
//	  → {images[base64], error}
var bedrock = shape{
	providers: []string{"bedrock"},
	create: func(in *input, _ string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		what, how := map[string]any{"text": prompt}, map[string]any{}
		set(what, "negativeText", in.str("negative_prompt"))
		if w, h := in.size(); w > 0 {
			how["width"], how["height"] = w, h
		}
		set(how, "numberOfImages", in.get("n"))
		set(how, "seed", in.get("seed"))
		switch in.doc.Get("quality").Str {
		case "high", "hd", "xhigh", "max":
			in.get("quality")
			how["quality"] = "premium"
		case "low", "medium", "standard":
			in.get("quality")
			how["quality"] = "standard"
		}
		return jsonBody(map[string]any{"taskType": "TEXT_IMAGE", "textToImageParams": what, "imageGenerationConfig": how})
	},
	read: func(raw []byte, _ string) (*made, error) {
		doc := gjson.ParseBytes(raw)
		m := &made{}
		for _, b := range doc.Get("images").Array() {
			m.images = append(m.images, one(b.Str, "image/png")...)
		}
		if len(m.images) == 0 && doc.Get("error").Str != "" {
			return nil, apierr.New(400, "content_filter", "The provider made no image from this prompt.")
		}
		return m, nil
	},
}

// fireworks has three kinds of calls:
//
//	POST workflows/{model}/text_to_image {prompt, aspect_ratio, …} (accept: image/jpeg) → the image
//	POST image_generation/{model} {prompt, width, height, …} (accept: image/png) → the image, for older models
//	POST workflows/{model} {prompt, input_image, …} → {request_id}, for Kontext;
//	  POST workflows/{model}/get_result {id} → {status Ready|…, result.sample}
var fireworks = shape{
	providers: []string{"fireworks"}, edits: true,
	route: func(model string) string {
		switch {
		case strings.Contains(model, "kontext"):
			return "imagesAsync"
		case strings.Contains(model, "flux"):
			return generations
		}
		return "imagesLegacy"
	},
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"prompt": prompt}
		accept := "image/jpeg"
		switch {
		case strings.Contains(model, "kontext"):
			accept = "application/json"
			for i, a := range in.images() {
				if i == 0 {
					body["input_image"] = a
				}
			}
			set(body, "aspect_ratio", in.ratio())
			set(body, "prompt_upsampling", in.get("prompt_upsampling"))
		case len(in.images()) > 0:
			return nil, endpoint.Refused("The provider of this model does not edit images with it.")
		case strings.Contains(model, "flux"):
			set(body, "aspect_ratio", in.ratio())
		default:
			accept = "image/png"
			if w, h := in.size(); w > 0 {
				body["width"], body["height"] = w, h
			}
			set(body, "negative_prompt", in.get("negative_prompt"))
		}
		for _, name := range []string{"seed", "guidance_scale", "num_inference_steps"} {
			set(body, name, in.get(name))
		}
		in.single()
		p, err := jsonBody(body)
		if err == nil {
			p.header = httpmsg.Header{{Name: "accept", Value: accept}}
		}
		return p, err
	},
	read: func(raw []byte, contentType string) (*made, error) {
		if strings.HasPrefix(contentType, "image/") {
			return &made{images: one(base64.StdEncoding.EncodeToString(raw), contentType)}, nil
		}
		return &made{job: gjson.GetBytes(raw, "request_id").Str}, nil
	},
	poll: func(m *made, model string, _ int) *plan {
		p, _ := jsonBody(map[string]any{"id": m.job})
		p.endpoint, p.model = "imagesResult", model
		return p
	},
	state: bfl.state,
}

// luma is Luma's Photon. Images to edit must be public URLs:
//
//	POST generations/image {prompt, model, aspect_ratio, modify_image_ref{url}} → {id, state}
//	GET generations/{id} → {state queued|dreaming|completed|failed, failure_reason, assets.image}
var luma = shape{
	providers: []string{"luma"}, edits: true,
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"prompt": prompt, "model": model}
		set(body, "aspect_ratio", in.ratio())
		set(body, "format", lumaFormat(in))
		for i, a := range in.images() {
			if strings.HasPrefix(a, "data:") {
				return nil, apierr.Invalid("image", "The provider of this model accepts image URLs only, not data: URLs.")
			}
			if i == 0 {
				body["modify_image_ref"] = map[string]string{"url": a}
			}
		}
		in.single()
		return jsonBody(body)
	},
	read: readTask, poll: taskOf,
	state: func(raw []byte, _ int) (*made, error) {
		doc := gjson.ParseBytes(raw)
		switch doc.Get("state").Str {
		case "completed":
			return &made{images: []image{{url: doc.Get("assets.image").Str}}}, nil
		case "failed":
			return nil, failed(doc.Get("failure_reason").Str)
		}
		return &made{}, nil
	},
}

func lumaFormat(in *input) string {
	switch f := in.str("output_format"); f {
	case "jpeg":
		return "jpg"
	default:
		return f
	}
}

// runway is Runway's API:
//
//	POST text_to_image {model, promptText, ratio "1024:1024", referenceImages[{uri}], seed} → {id}
//	GET tasks/{id} → {status, output[], failure}
var runway = shape{
	providers: []string{"runway"}, edits: true,
	create: func(in *input, model string) (*plan, error) {
		prompt, err := in.prompt()
		if err != nil {
			return nil, err
		}
		body := map[string]any{"model": model, "promptText": prompt, "ratio": "1024:1024"}
		if ratio := in.ratio(); ratio != "" {
			known := map[string]string{
				"1:1": "1024:1024", "16:9": "1920:1080", "9:16": "1080:1920", "4:3": "1440:1080", "3:4": "1080:1440",
				"21:9": "1808:768",
				"3:2":  "1440:1080", "2:3": "1080:1440", "5:4": "1440:1080", "4:5": "1080:1440", // the nearest
			}[ratio]
			if known == "" {
				return nil, apierr.Invalid("aspect_ratio", "The provider of this model does not support this aspect ratio.")
			}
			body["ratio"] = known
		}
		var references []any
		for _, a := range in.images() {
			references = append(references, map[string]string{"uri": a})
		}
		if references != nil {
			body["referenceImages"] = references
		}
		set(body, "seed", in.get("seed"))
		in.single()
		return jsonBody(body)
	},
	read: readTask, poll: taskOf,
	state: func(raw []byte, _ int) (*made, error) {
		doc := gjson.ParseBytes(raw)
		switch doc.Get("status").Str {
		case "SUCCEEDED":
			m := &made{}
			for _, u := range doc.Get("output").Array() {
				m.images = append(m.images, image{url: u.Str})
			}
			if len(m.images) == 0 {
				return nil, failed("")
			}
			return m, nil
		case "FAILED", "CANCELLED":
			return nil, failed(doc.Get("failure").Str)
		}
		return &made{}, nil
	},
}

// readTask reads the job of an answer whose member id names it.
func readTask(raw []byte, _ string) (*made, error) {
	return &made{job: gjson.GetBytes(raw, "id").Str}, nil
}

// taskOf is the poll of providers with one endpoint for all jobs.
func taskOf(m *made, _ string, _ int) *plan {
	return &plan{endpoint: "videoStatus", parts: []provider.Part{{Name: "id", Value: m.job}}}
}

// single accepts n if it is 1, for models that make one image.
func (in *input) single() {
	if in.doc.Get("n").Int() == 1 {
		in.get("n")
	}
}
