// Package gemini is Google's generateContent dialect, as an upstream: its requests,
// answers and streams.
//
// See docs/reference/api-shapes.md, 10.
package gemini
