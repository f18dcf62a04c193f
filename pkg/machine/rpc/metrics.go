package rpc

// MetricsAsk is the body of the operation "metrics". The answer is a list of metrics.Family.
type MetricsAsk struct {
	Keys        bool   `json:"keys,omitempty"`        // with the series of each key
	Conventions string `json:"conventions,omitempty"` // with the metrics of GenAI or GenAI141
}

// Versions of the GenAI conventions. That of 1.41 and earlier has one set of metrics for all
// operations, the newer one another for inference.
const (
	GenAI    = "0.1.0"
	GenAI141 = "1.41"
)
