package rpc

// Notice is an event of the gateway as a whole, of which every machine is told. See the
// events of package deliver.
//
//	notice Notice   200 {}   (registry)
type Notice struct {
	Event string `json:"event"`
	Title string `json:"title"`
	Text  string `json:"text"`
	At    int64  `json:"at,omitempty"` // set by the registry
	// Machines are those that it concerns; nil means all.
	Machines []string `json:"machines,omitempty"`
}
