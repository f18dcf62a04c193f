// Package oidc compares the verifier of tokens with go-jose. It is a module of its own, so that
// the library is no dependency of the program.
package oidc
