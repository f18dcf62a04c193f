// Package oidc compares the verifier of tokens with go-jose, and signs people in at a provider
// that is not of this repository. It is a module of its own, so that the libraries are no
// dependency of the program.
package oidc
