package rpc

// MetricsAsk is the body of the operation "metrics". The answer is a list of metrics.Family.
type MetricsAsk struct {
	Keys bool `json:"keys,omitempty"` // with the series of each key
}
