// Package messages is Anthropic's Messages dialect, versions 2023-06-01 and
// 2026-10-21: its requests, answers and streams.
//
// See docs/reference/api-shapes.md, 8.
package messages
