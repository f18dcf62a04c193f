//go:build !unix

package program

func becomeUser() {}
