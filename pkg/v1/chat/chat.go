// Package chat serves POST /v1/chat/completions.
package chat
