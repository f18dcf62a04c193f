// Package clients tests the gateway with OpenAI's client for Go. It is a
// module of its own, so that the client is no dependency of the program.
package clients
