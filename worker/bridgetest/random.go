//go:build js && wasm

package main

import (
	"crypto/rand"
	"encoding/hex"
)

func randomHex() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
