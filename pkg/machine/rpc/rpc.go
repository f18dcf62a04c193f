// Package rpc has the messages between the data plane and the objects of
// machines, the limits that both sides use, and the ids and keys of machines.
//
// Operations of the data plane. Times are Unix milliseconds.
//
//	snapshot  SnapshotQuery                            200 Same, or a store.Machine; 404 no such machine
//	report    Report                                   200 Reported
//	budget.take budget.Asks                            200 Granted
//	refresh   Refresh                                  200 Refreshed; 409 cannot; 503 not now
//	job.put   Job                                      200 {}
//	job.get   {"id":"…"}                               200 Job; 404
//	job.bill  JobBill                                  200 Billed; 404
//	capture.put a store.Request, a line feed, and its bodies  200 {"stored":true}, or false
//	key.usage KeyUsageQuery                            200 what GET /v1/usage returns; 401 no such key
//	key.request KeyRequestQuery                        200 what GET /v1/usage/requests/{id} returns, or {"scan"} to go on from; 404
//
// A refresh is sent with exactly these bytes, in this order and without blanks:
// identical calls that overlap become one call.
package rpc

import (
	"context"
	"time"

	"weir/pkg/budget"
	"weir/pkg/store"
	"weir/pkg/usage"
)

// RegistryID is the machineId of the object that stores the list of machines.
const RegistryID = "registry"

// Stub calls a machine's object from anywhere. The answer is an HTTP status
// and a JSON body. An error means that the object could not be called, and that
// the outcome of the call is unknown.
type Stub interface {
	Call(ctx context.Context, machineID, op string, body []byte) (status int, answer []byte, err error)
}

// Limit returns how long the caller of an operation waits for its answer; the operation
// runs to its end. The machine's snapshot is asked for before a call: if there is no
// answer, the replica serves.
func Limit(op string) time.Duration {
	if op == "snapshot" {
		return 10 * time.Second
	}
	return 30 * time.Second
}

// RefreshLimit is how long the object lets a caller wait for a refresh, which then
// continues up to the time limit of the call to the token endpoint. StillRefreshing is the
// body of the answer to that caller, whose status is 503.
const (
	RefreshLimit    = 10 * time.Second
	StillRefreshing = `{"error":{"message":"the token is being refreshed","type":"server_error","code":"refresh_in_progress","retryAfterMs":2000}}`
)

// Pending is a call of an object under way.
type Pending interface {
	Wait() (status int, answer []byte, err error)
}

// Starter is a Stub that can begin a call without waiting for its answer.
type Starter interface {
	Start(ctx context.Context, machineID, op string, body []byte) Pending
}

// Start begins a call. With a Stub that is no Starter, Wait makes it.
func Start(ctx context.Context, s Stub, machineID, op string, body []byte) Pending {
	if s, ok := s.(Starter); ok {
		return s.Start(ctx, machineID, op, body)
	}
	return later{ctx, s, machineID, op, body}
}

// later is a call that begins when it is waited for.
type later struct {
	ctx           context.Context
	stub          Stub
	machineID, op string
	body          []byte
}

// Wait implements Pending.
func (l later) Wait() (int, []byte, error) { return l.stub.Call(l.ctx, l.machineID, l.op, l.body) }

// SnapshotQuery asks for what has changed since the caller's replica.
//
//easyjson:json
type SnapshotQuery struct {
	Have     int64 `json:"have"`               // its generation; 0 for none
	Observed int64 `json:"observed,omitempty"` // of its State
	// Confirm asks for the generation and the State only: the caller reads the
	// configuration in KV.
	Confirm bool `json:"confirm,omitempty"`
}

// Same is the answer to a SnapshotQuery without the configuration. Same reports
// that the caller has the newest configuration; State is nil if it has the newest
// one too.
//
//easyjson:json
type Same struct {
	Same       bool   `json:"same"`
	Generation int64  `json:"generation"`
	Observed   int64  `json:"observed,omitempty"`
	State      *State `json:"state,omitempty"`
}

// State is what calls have shown of a machine. It is never in KV.
type State struct {
	Cooldowns []store.Cooldown `json:"cooldowns,omitempty"`
	Refusals  []store.Refusal  `json:"refusals,omitempty"`
	// Quotas has the windows of an hour and more: shorter ones are over before
	// another isolate learns of them.
	Quotas []store.Quota `json:"quotas,omitempty"`
}

// Bounds of a Report.
const (
	MaxReport        = 16 << 20 // bytes
	MaxReportEntries = 1000     // of each kind but requests
	// MaxReportRequests are those of two seconds at 1,000 a second: a report is sometimes late.
	MaxReportRequests = 2000
	MaxErrorText      = 300 // bytes of a LastError, or of an attempt's failure
)

// Report is what an isolate has seen since its last report.
//
//easyjson:json
type Report struct {
	Cooldowns []store.Cooldown `json:"cooldowns,omitempty"`
	// Cleared lists accounts that worked again.
	Cleared []Cleared `json:"cleared,omitempty"`
	// Errors are the last errors of connections, redacted; "" clears.
	Errors []LastError `json:"errors,omitempty"`
	// Refusals are the fields that servers have refused by name; an Until of 0
	// means that the server accepts the field again.
	Refusals []store.Refusal `json:"refusals,omitempty"`
	// Quotas are the gauges of accounts that have changed.
	Quotas []Quota `json:"quotas,omitempty"`
	// Budgets have what calls have used of budgets and of the limits of keys.
	Budgets *budget.Asks `json:"budgets,omitempty"`
	// Usage is added to the rows of the day.
	Usage []usage.Row `json:"usage,omitempty"`
	// Labels have the same usage by the labels of the calls.
	Labels []usage.Label `json:"labels,omitempty"`
	// Networks are those that keys were used from.
	Networks []store.KeyNetwork `json:"networks,omitempty"`
	// Requests are requests of clients, oldest first: all, or those that store.Thin
	// has kept. Unlisted is the number of the others, and UnlistedFailed that of the
	// failures among these.
	Requests       []store.Request `json:"requests,omitempty"`
	Unlisted       int64           `json:"unlisted,omitempty"`
	UnlistedFailed int64           `json:"unlistedFailed,omitempty"`
}

// Cleared reports that an account, or one model of it, works. At is comparable
// with the Since of a cooldown.
type Cleared struct {
	ConnectionID string `json:"connectionId"`
	Model        string `json:"model,omitempty"`
	At           int64  `json:"at"`
}

// Quota is a changed gauge. Moved reports that other isolates should learn of it:
// a window of an hour or more has changed by more than QuotaStep.
type Quota struct {
	store.Quota
	Moved bool `json:"moved,omitempty"`
}

// QuotaStep is the share of a window by which the gauge of another isolate may be
// wrong.
const QuotaStep = 0.05

// LastError is the latest error of a connection.
type LastError struct {
	ConnectionID string `json:"connectionId"`
	Text         string `json:"text"`
}

// Reported is the answer to a Report: the Observed of the State that has its changes.
//
//easyjson:json
type Reported struct {
	Observed int64          `json:"observed"`
	Budgets  []budget.Grant `json:"budgets,omitempty"`
}

// Granted is the answer to "budget.take": a Grant for each Ask whose budget exists.
type Granted struct {
	Grants []budget.Grant `json:"grants"`
}

// Refresh asks for a newer access token of a connection than that of the generation.
type Refresh struct {
	ConnectionID    string `json:"connectionId"`
	TokenGeneration int64  `json:"tokenGeneration"`
}

// Refreshed is the answer to a Refresh: the connection with its new token,
// sealed. Unsaved reports that the token could not be stored yet, Earlier that
// another call had brought it before.
type Refreshed struct {
	Connection store.Connection `json:"connection"`
	Generation int64            `json:"generation"` // of the machine
	Unsaved    bool             `json:"unsaved,omitempty"`
	Earlier    bool             `json:"earlier,omitempty"`
}

// KeyUsageQuery asks for the limits and the use of a key.
type KeyUsageQuery struct {
	KeyID string `json:"keyId"`
}

// KeyRequestQuery asks for a request of a key. Scan is where the search goes on, as in
// ManageCall.
type KeyRequestQuery struct {
	KeyID string `json:"keyId"`
	ID    string `json:"id"`
	Scan  int64  `json:"scan,omitempty"`
}

// CaptureField is the field that the bodies of a request, a capture.Document, are sealed for,
// with the id of the request.
const CaptureField = "capture:"

// Job is work of an upstream that outlives one request. It records the account
// and the address. The id is the upstream's.
type Job struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`           // video, response, …
	Name         string `json:"name,omitempty"` // the upstream's own, if the id is not made of it
	ConnectionID string `json:"connectionId"`
	Provider     string `json:"provider,omitempty"`
	Origin       string `json:"origin,omitempty"` // of the upstream's address
	Model        string `json:"model,omitempty"`
	KeyID        string `json:"keyId,omitempty"`
	RequestID    string `json:"requestId,omitempty"` // of the client's request that created it
	CreatedAt    int64  `json:"createdAt,omitempty"`
	ExpiresAt    int64  `json:"expiresAt,omitempty"` // 0 means in 30 days
	// Unbilled counts the job as an attempt whose cost is not known. It is added to the
	// usage when the job expires, unless job.bill has said what was used; nil if the answer
	// that created it did. Counted is what the budgets have counted for it, by their ids.
	Unbilled *usage.Row       `json:"unbilled,omitempty"`
	Counted  map[string]int64 `json:"counted,omitempty"`
	// Labels have the counts of Unbilled by the labels of the call that created it: whoever asks
	// for the job later may have others. Jobs of earlier versions have none.
	Labels []usage.Label `json:"labels,omitempty"`
}

// JobBill is what a job has used.
type JobBill struct {
	ID     string        `json:"id"`
	Usage  usage.Row     `json:"usage"`
	Labels []usage.Label `json:"labels,omitempty"` // of the call that asks, for a job without its own
}

// Billed is the answer to a JobBill: false if the job was billed before.
type Billed struct {
	Billed bool `json:"billed"`
}

// CallbackQuery is the request of a browser that returns from an identity
// provider.
type CallbackQuery struct {
	Session     string `json:"session"`
	RedirectURI string `json:"redirectUri"`
	Query       string `json:"query"`
}

// Connected is the result of an authorization.
type Connected struct {
	Provider     string `json:"provider"`
	Name         string `json:"name"` // of the provider
	ConnectionID string `json:"connectionId"`
	Renewed      bool   `json:"renewed,omitempty"` // the connection existed before
}

// Created is the answer to the creation of a machine. The key is shown once.
type Created struct {
	MachineID string `json:"machineId"`
	APIKey    string `json:"apiKey,omitempty"`
}
