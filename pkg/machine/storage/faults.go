package storage

// Fault is a state that notifications report: once when it begins, once when it is over.
type Fault struct {
	Event   string `json:"event"`
	Subject string `json:"subject"`           // what has the fault, as it is shown
	Name    string `json:"name,omitempty"`    // its id or name, for programs
	Of      string `json:"of,omitempty"`      // the provider of a model that is down
	Why     string `json:"why,omitempty"`     // what is wrong
	Since   int64  `json:"since"`             // Unix milliseconds
	Until   int64  `json:"until,omitempty"`   // when it ends by itself
	Hold    int64  `json:"hold,omitempty"`    // it is reported when it has lasted as long, milliseconds
	Told    int64  `json:"told,omitempty"`    // when it was reported last
	Open    bool   `json:"open,omitempty"`    // its end is not reported yet
	Level   int    `json:"level,omitempty"`   // minutes of a limit, or percent of an error rate
	Reached int    `json:"reached,omitempty"` // the highest level that was reported
	Over    int64  `json:"over,omitempty"`    // when it ended; 0 while it lasts
}

// Faults is the row of what notifications depend on.
type Faults struct {
	All  map[string]Fault `json:"all,omitempty"`
	Week int64            `json:"week,omitempty"` // whose spend was reported, by its first day
	Rate []Minutely       `json:"rate,omitempty"` // of the last minutes
	// Notice is the time of the last rpc.Notice that was taken.
	Notice int64 `json:"notice,omitempty"`
}

// Minutely counts the requests of a minute.
type Minutely struct {
	At     int64 `json:"at"` // Unix minutes
	All    int64 `json:"all"`
	Failed int64 `json:"failed,omitempty"`
}

// Faults returns what notifications depend on.
func (t *Tx) Faults() (f Faults) {
	t.Load(faultsRow, &f)
	if f.All == nil {
		f.All = map[string]Fault{}
	}
	return f
}

// PutFaults stores what notifications depend on.
func (t *Tx) PutFaults(f *Faults) { t.Put(faultsRow, f) }
