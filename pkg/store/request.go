package store

import "weir/pkg/wire/httpmsg"

// Request is what is kept of a client's call for a while: no body, nothing of
// its text.
type Request struct {
	Seq          int64  `json:"seq,omitempty"` // within the machine, from 1 on
	ID           string `json:"id"`
	At           int64  `json:"at"` // when it came in, Unix milliseconds
	KeyID        string `json:"keyId,omitempty"`
	Endpoint     string `json:"endpoint"`
	Asked        string `json:"asked,omitempty"` // model id as the client wrote it
	Model        string `json:"model,omitempty"` // public id of the model that served, or was tried last
	Provider     string `json:"provider,omitempty"`
	ConnectionID string `json:"connectionId,omitempty"`
	Status       int    `json:"status"`
	// Error is the code of the failure, or its type; with a status of 200 the
	// stream failed later.
	Error     string            `json:"error,omitempty"`
	LatencyMs int64             `json:"latencyMs"` // to the end of the answer
	Attempts  int               `json:"attempts"`
	Failed    []httpmsg.Attempt `json:"failed,omitempty"` // the attempts that failed, in order
	Dropped   []string          `json:"dropped,omitempty"`
	httpmsg.Used
}
