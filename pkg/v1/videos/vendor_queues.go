package videos

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"weir/pkg/endpoint/download"
	"weir/pkg/provider"
)

// fal is fal's queue. Fields of the body are each model's own. Of the model's
// path only the first two parts stand in the addresses of a job.
//
//	POST {model} {prompt, …} → {request_id, status_url, response_url}
//	GET {owner/app}/requests/{id}/status → {status IN_QUEUE|IN_PROGRESS|COMPLETED}
//	GET {owner/app}/requests/{id} → {video.url}
var fal = shape{
	providers: []string{"fal"}, failsLast: true,
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"prompt": in.prompt()}
		if seconds := in.seconds(); seconds > 0 {
			body["duration"] = falDuration(model, seconds)
		}
		set(body, "aspect_ratio", in.ratio())
		set(body, "resolution", in.resolution())
		first := "image_url"
		if falStartImage(model) {
			first = "start_image_url"
		}
		set(body, first, in.address("image"))
		set(body, "video_url", in.address("video"))
		set(body, "end_image_url", in.address("last_frame"))
		set(body, "reference_image_urls", in.addresses("reference_images"))
		in.rest(body)
		return write(generations, model, in, body)
	},
	name: func(raw []byte, model string) string {
		id := gjson.GetBytes(raw, "request_id").Str
		parts := strings.SplitN(model, "/", 3)
		if id == "" || len(parts) < 2 {
			return id
		}
		return parts[0] + "/" + parts[1] + "/" + id
	},
	poll: func(name string, step int, _ []byte) (*plan, error) {
		at := strings.LastIndexByte(name, '/')
		if at <= 0 {
			return nil, notFound()
		}
		p := &plan{endpoint: "status", model: name[:at], parts: []provider.Part{{Name: "request_id", Value: name[at+1:]}}}
		if step > 0 {
			p.endpoint = "result"
		}
		return p, nil
	},
	read: func(_ string, step int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		if step == 0 {
			s := words{done: "COMPLETED"}.state(doc.Get("status").Str)
			return s, s.Status == "done"
		}
		s := state{Status: "done", URL: doc.Get("video.url").Str, Duration: doc.Get("video.duration").Num}
		s.URL = cmp.Or(s.URL, doc.Get("videos.0.url").Str)
		if s.URL == "" {
			s.Status, s.Message = "failed", doc.Get("detail").Str
		}
		return s, false
	},
}

// falDuration returns a duration in the format of a model on fal: a string of
// digits ("5", "10") for most, "8s" for Veo and Luma's Ray, a number for Sora and
// LTX.
func falDuration(model string, seconds int64) any {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(model, n) })
	}
	switch {
	case has("sora", "/ltx"):
		return seconds
	case has("/veo", "luma"):
		return strconv.FormatInt(seconds, 10) + "s"
	}
	return strconv.FormatInt(seconds, 10)
}

// falStartImage reports whether a model on fal calls its first frame
// start_image_url: Kling O1, 3.0 and 4.0.
func falStartImage(model string) bool {
	if !strings.Contains(model, "kling") {
		return false
	}
	return slices.ContainsFunc([]string{"/o1/", "/v3/", "/v4/"},
		func(version string) bool { return strings.Contains(model+"/", version) })
}

// bfl is Black Forest Labs' queue. The answer names the address to poll, which
// is in the region that has the job.
//
//	POST {model} {prompt, …} → {id, polling_url}
//	GET polling_url → {status, result.sample}
var bfl = shape{
	providers: []string{"bfl"},
	create: func(in *input, model, _ string) (*plan, error) {
		body := map[string]any{"prompt": in.prompt()}
		image := in.address("image")
		if _, data, ok := download.DataURI(image); ok {
			image = data
		}
		set(body, "input_image", image)
		set(body, "duration", in.seconds())
		set(body, "aspect_ratio", in.ratio())
		set(body, "resolution", in.resolution())
		in.rest(body)
		return write(generations, model, in, body)
	},
	name: func(raw []byte, _ string) string {
		if url := gjson.GetBytes(raw, "polling_url").Str; url != "" && len(url) <= maxName {
			return url
		}
		return gjson.GetBytes(raw, "id").Str
	},
	poll: func(name string, _ int, _ []byte) (*plan, error) {
		p := &plan{endpoint: "result", parts: []provider.Part{{Name: "id", Value: name}}}
		if strings.Contains(name, "://") {
			p.url, p.parts[0].Value = name, "x"
		}
		return p, nil
	},
	read: func(_ string, _ int, body []byte) (state, bool) {
		doc := gjson.ParseBytes(body)
		s := words{done: "Ready", failed: "Error|Failed|Request Moderated|Content Moderated|Task not found"}.state(doc.Get("status").Str)
		s.URL = doc.Get("result.sample").Str
		if strings.HasSuffix(doc.Get("status").Str, "Moderated") {
			s.Code, s.Message = "content_policy", "the provider's moderation blocked the content"
		}
		return s, false
	},
}
