package videos

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint"
	"weir/pkg/provider"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/httpmsg"
)

// miniMax is MiniMax's video API of version 1, which says in base_resp whether
// it took a call, and names a file when the video is there:
//
//	POST v1/video_generation {model, prompt, duration, resolution "768P", first_frame_image, last_frame_image} → {task_id, base_resp}
//	GET v1/query/video_generation?task_id= → {status, file_id}
//	GET v1/files/retrieve?file_id= → {file.download_url}
var miniMax = shape{
	providers: []string{"minimax"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"model": model, "prompt": in.prompt()}
		set(body, "duration", in.seconds())
		resolution := strings.ToUpper(in.resolution())
		if known := map[string]string{"480P": "512P", "540P": "512P", "720P": "768P"}[resolution]; known != "" &&
			strings.Contains(model, "Hailuo") {
			resolution = known // it has 512P, 768P and 1080P
		}
		set(body, "resolution", resolution)
		set(body, "first_frame_image", in.address("image"))
		set(body, "last_frame_image", in.address("last_frame"))
		set(body, "prompt_optimizer", in.get("prompt_optimizer"))
		return write("videosLegacy", model, in, body)
	},
	refusal: endpoint.MiniMaxError,
	name:    field("task_id"),
	poll: func(name string, step int, last []byte) (*plan, error) {
		p := &plan{endpoint: "videoStatusLegacy", parts: []provider.Part{{Name: "id", Value: name}}}
		if step > 0 {
			p.endpoint, p.parts[0].Value = "files", textOf(gjson.GetBytes(last, "file_id"))
		}
		return p, nil
	},
	read: func(_ string, step int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		if step > 0 {
			return state{Status: "done", URL: doc.Get("file.download_url").Str}, false
		}
		s := words{done: "Success", failed: "Fail|Failed"}.state(doc.Get("status").Str)
		s.Message = doc.Get("base_resp.status_msg").Str
		return s, s.Status == "done" && textOf(doc.Get("file_id")) != ""
	},
}

// dashScope is Model Studio's asynchronous API:
//
//	POST video-generation/video-synthesis {model, input{prompt, img_url}, parameters{size|resolution, duration}} → {output.task_id}
//	  from Wan 2.7 on: input.media[{type first_frame|last_frame|reference_image, url}], parameters{resolution, ratio}
//	POST image2video/video-synthesis {model, input{prompt, first_frame_url, last_frame_url}, …}, for models of two frames (kf2v)
//	GET tasks/{id} → {output{task_status, video_url, code, message}}
var dashScope = shape{
	providers: []string{"dashscope"},
	create: func(in *input, model, _ string) (*plan, error) {
		what, how := map[string]any{"prompt": in.prompt()}, map[string]any{}
		set(what, "negative_prompt", in.text("negative_prompt"))
		endpoint, image := generations, in.address("image")
		switch {
		case strings.Contains(model, "kf2v"):
			endpoint = "imageToVideo"
			set(what, "first_frame_url", image)
			set(what, "last_frame_url", in.address("last_frame"))
			set(how, "resolution", strings.ToUpper(in.resolution()))
		case dashScopeMedia(model):
			var list []any
			add := func(kind, address string) {
				if address != "" {
					list = append(list, map[string]string{"type": kind, "url": address})
				}
			}
			add("first_frame", image)
			add("last_frame", in.address("last_frame"))
			for _, a := range in.addresses("reference_images") {
				add("reference_image", a)
			}
			if list != nil {
				what["media"] = list
			}
			set(how, "resolution", strings.ToUpper(in.resolution()))
			if ratio := in.ratio(); image == "" { // else the ratio is the frame's
				set(how, "ratio", ratio)
			}
		default:
			set(what, "img_url", image)
			if w, h := in.pixels(); image == "" && w > 0 {
				how["size"] = strconv.Itoa(w) + "*" + strconv.Itoa(h)
			} else {
				set(how, "resolution", strings.ToUpper(in.resolution()))
			}
		}
		set(how, "duration", in.seconds())
		set(how, "seed", in.get("seed"))
		p, err := write(endpoint, model, in, map[string]any{"model": model, "input": what, "parameters": how})
		if err == nil {
			p.header = httpmsg.Header{{Name: "x-dashscope-async", Value: "enable"}}
		}
		return p, err
	},
	name: field("output.task_id"),
	poll: byID("id"),
	read: func(_ string, _ int, body []byte) (state, bool) {
		out := gjson.GetBytes(body, "output")
		s := words{done: "SUCCEEDED", failed: "FAILED|CANCELED", expired: "UNKNOWN"}.state(out.Get("task_status").Str)
		s.URL, s.Code, s.Message = out.Get("video_url").Str, out.Get("code").Str, out.Get("message").Str
		return s, false
	},
}

// dashScopeMedia reports whether a model takes its frames as a list: Wan from 2.7
// on, and HappyHorse.
func dashScopeMedia(model string) bool {
	if strings.HasPrefix(model, "happyhorse") {
		return true
	}
	version, ok := strings.CutPrefix(model, "wan")
	version, _, _ = strings.Cut(version, "-")
	n, err := strconv.ParseFloat(version, 64)
	return ok && err == nil && n >= 2.7
}

// zai is Z.ai's API:
//
//	POST videos/generations {model, prompt, image_url, size, duration, with_audio} → {id, task_status}
//	GET async-result/{id} → {task_status PROCESSING|SUCCESS|FAIL, video_result[].url}
var zai = shape{
	providers: []string{"zai"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"model": model, "prompt": in.prompt()}
		set(body, "duration", in.seconds())
		if w, h := in.pixels(); w > 0 {
			body["size"] = strconv.Itoa(w) + "x" + strconv.Itoa(h)
		}
		first, last := in.address("image"), in.address("last_frame")
		if last != "" {
			if first == "" {
				return nil, apierr.Invalid("image", "A last frame needs a first one with this provider.")
			}
			body["image_url"] = []string{first, last}
		} else {
			set(body, "image_url", first)
		}
		set(body, "with_audio", in.get("generate_audio"))
		return write(generations, model, in, body)
	},
	name: field("id"),
	poll: byID("id"),
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "SUCCESS", failed: "FAIL"}.state(doc.Get("task_status").Str)
		s.Model, s.URL = doc.Get("model").Str, doc.Get("video_result.0.url").Str
		s.Code, s.Message = textOf(doc.Get("error.code")), doc.Get("error.message").Str
		return s, false
	},
}
