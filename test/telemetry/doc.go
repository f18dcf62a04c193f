// Package telemetry reads what weir exports with the libraries of OpenTelemetry. It is a
// module of its own: the program has none of them.
package telemetry
