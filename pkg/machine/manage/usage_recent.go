package manage

import (
	"weir/pkg/machine/storage"
	"weir/pkg/usage"
)

// recentView is the usage of a step of the last hour.
type recentView struct {
	At int64 `json:"at"` // its start, Unix milliseconds
	usage.View
}

// usageRecent answers GET /api/usage/recent: the usage of the last hour in steps of five
// minutes. The last step is the current one.
//
//	200 {"object":"list","stepMs":300000,"data":[recentView],"total":{…}}
func (c *change) usageRecent() (any, error) {
	out := struct {
		Object string       `json:"object"`
		StepMs int64        `json:"stepMs"`
		Data   []recentView `json:"data"`
		Total  usage.View   `json:"total"`
	}{Object: "list", StepMs: storage.RecentStep}
	var total usage.Row
	for _, step := range c.Recent() {
		total.Add(&step.Row)
		out.Data = append(out.Data, recentView{step.At, step.View()})
	}
	out.Total = total.View()
	return out, nil
}
