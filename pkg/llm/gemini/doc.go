// Package gemini is Google's generateContent dialect: requests, answers and streams,
// both of upstreams and of clients.
//
// See docs/reference/api-shapes.md, 10, and docs/reference/dialects.md, a.
package gemini
