package usage

import "strings"

// Operation returns the name of the operation of an endpoint in the GenAI conventions. That of
// a name of an operation is the same.
func Operation(endpoint string) string {
	switch endpoint {
	case "/v1/chat/completions", "/v1/messages", "/v1/responses":
		return "chat"
	case "/v1/completions":
		return "text_completion"
	case "/v1/embeddings":
		return "embeddings"
	case "/v1/search", "/v1/rerank":
		return "retrieval"
	}
	if strings.HasPrefix(endpoint, "/v1beta/") {
		return "generate_content"
	}
	return strings.ReplaceAll(strings.TrimPrefix(endpoint, "/v1/"), "/", "_") // audio_speech
}

// IsInference reports whether the conventions 0.1.0 have metrics of their own for an operation.
func IsInference(operation string) bool {
	return operation == "chat" || operation == "generate_content" || operation == "text_completion"
}
