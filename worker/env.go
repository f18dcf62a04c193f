//go:build js && wasm

package main

import (
	"strings"

	"weir/pkg/gateway"
	"weir/worker/bridge"
)

// config reads the worker's variables and secrets. It is called at the first
// event: the platform has none before.
func config() gateway.Config {
	level := strings.ToLower(bridge.Variable("LOG_LEVEL"))
	return gateway.Config{
		AdminToken:     bridge.Variable("ADMIN_TOKEN"),
		KeySecret:      bridge.Variable("API_KEY_SECRET"),
		CredentialsKey: bridge.Variable("CREDENTIALS_KEY"),
		RequireKey:     !oneOf(bridge.Variable("REQUIRE_API_KEY"), "false", "0", "off", "no"),
		AllowPrivate:   oneOf(bridge.Variable("ALLOW_PRIVATE_UPSTREAMS"), "true", "1", "on", "yes"),
		Reseed:         oneOf(bridge.Variable("ALLOW_RESEED"), "true", "1", "on", "yes"),
		OAuthProviders: bridge.Variable("OAUTH_PROVIDERS"),
		PublicURL:      bridge.Variable("PUBLIC_URL"),
		ProxyURL:       bridge.Variable("PROXY_URL"),
		Quiet:          level == "warn" || level == "error",
	}
}

// oneOf reports whether v is one of values, in any case.
func oneOf(v string, values ...string) bool {
	for _, w := range values {
		if strings.EqualFold(v, w) {
			return true
		}
	}
	return false
}
