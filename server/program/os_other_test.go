//go:build !unix

package program

func becomeUser() {}

func limitFiles(uint64) {}
