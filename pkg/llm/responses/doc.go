// Package responses is OpenAI's Responses dialect: its requests, answers and
// streams, without state on the server.
//
// See docs/reference/api-shapes.md, 4.
package responses
