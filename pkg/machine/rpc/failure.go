package rpc

import (
	"encoding/json"
	"time"

	"weir/pkg/wire/apierr"
)

// Failure is the body of an answer whose status is not 2xx.
type Failure struct {
	Error FailureInfo `json:"error"`
}

// FailureInfo has the fields of an apierr.Error that reach the caller of an
// object.
type FailureInfo struct {
	Message      string `json:"message"`
	Type         string `json:"type"`
	Code         string `json:"code,omitempty"`
	Param        string `json:"param,omitempty"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
}

// FailureOf returns the body that reports e.
func FailureOf(e *apierr.Error) Failure {
	return Failure{FailureInfo{e.Message, e.Type, e.Code, e.Param, e.RetryAfter.Milliseconds()}}
}

// ReadFailure returns the error that an answer reports whose status is not 2xx.
// An unreadable answer is a 503.
func ReadFailure(status int, answer []byte) *apierr.Error {
	var f Failure
	if json.Unmarshal(answer, &f) != nil || f.Error.Message == "" || status < 400 || status > 599 {
		e := apierr.New(503, "unavailable", "The machine cannot be reached at the moment. Try again in a moment.")
		e.RetryAfter = time.Second
		return e
	}
	e := &apierr.Error{Status: status, Type: f.Error.Type, Code: f.Error.Code, Param: f.Error.Param,
		Message: f.Error.Message}
	e.RetryAfter = time.Duration(f.Error.RetryAfterMs) * time.Millisecond
	return e
}
