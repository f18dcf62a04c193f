//go:build !unix

package program

import "testing"

func runTests(m *testing.M) int { return m.Run() }

func becomeUser() {}

func limitFiles(uint64) {}
