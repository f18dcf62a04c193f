// Package converse is Amazon Bedrock's Converse dialect, as an upstream: its
// requests, answers and streams, whose frames arrive as server-sent events
// (pkg/provider/bedrock).
package converse
