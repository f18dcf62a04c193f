// Package cohere is Cohere's v2 chat dialect, as an upstream: its requests, answers
// and streams.
package cohere
