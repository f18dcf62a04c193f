package manage

import (
	"weir/pkg/store"
)

// quota lists what is left of the limits of each account, as its provider has said in
// its last answers. Windows that have begun again since are left out.
//
//	GET /api/quota → {"data":[{"connectionId","provider","name","windows":[{"name","model","left","limit","remaining","resetsAt","spanSeconds","observedAt"}]}]}
func (c *change) quota() (any, error) {
	type window struct {
		Name        string  `json:"name"`
		Model       string  `json:"model,omitempty"`
		Left        float64 `json:"left"` // share, 0 to 1
		Limit       float64 `json:"limit,omitempty"`
		Remaining   float64 `json:"remaining,omitempty"`
		ResetsAt    int64   `json:"resetsAt,omitempty"`
		SpanSeconds int64   `json:"spanSeconds,omitempty"`
		ObservedAt  int64   `json:"observedAt"`
	}
	type row struct {
		ConnectionID string   `json:"connectionId"`
		Provider     string   `json:"provider"`
		Name         string   `json:"name,omitempty"`
		Windows      []window `json:"windows"`
	}
	out := list[row]{"list", []row{}}
	for _, conn := range c.Connections() {
		r := row{ConnectionID: conn.ID, Provider: conn.Provider, Name: conn.Name, Windows: []window{}}
		for _, w := range c.Quota(conn.ID) {
			if !store.QuotaOver(&w, c.Now) {
				r.Windows = append(r.Windows, window{w.Name, w.Model, w.Left, w.Limit, w.Remaining, w.ResetsAt, w.Span, w.At})
			}
		}
		out.Data = append(out.Data, r)
	}
	return out, nil
}
