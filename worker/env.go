//go:build js && wasm

package main

import (
	"strings"

	"github.com/syumai/workers/cloudflare"

	"weir/pkg/gateway"
)

// config reads the worker's variables and secrets. It is called at the first
// event: the platform has no environment before.
func config() gateway.Config {
	level := strings.ToLower(cloudflare.Getenv("LOG_LEVEL"))
	return gateway.Config{
		AdminToken:     cloudflare.Getenv("ADMIN_TOKEN"),
		KeySecret:      cloudflare.Getenv("API_KEY_SECRET"),
		CredentialsKey: cloudflare.Getenv("CREDENTIALS_KEY"),
		RequireKey:     !off(cloudflare.Getenv("REQUIRE_API_KEY")),
		AllowPrivate:   on(cloudflare.Getenv("ALLOW_PRIVATE_UPSTREAMS")),
		Quiet:          level == "warn" || level == "error",
	}
}

func on(v string) bool {
	v = strings.ToLower(v)
	return v == "true" || v == "1" || v == "on" || v == "yes"
}

func off(v string) bool {
	v = strings.ToLower(v)
	return v == "false" || v == "0" || v == "off" || v == "no"
}
