// Package chat is OpenAI's dialect of chat completions: its requests, answers and
// streams, and how compatible servers deviate from it.
//
// See docs/reference/api-shapes.md, 3.
package chat
