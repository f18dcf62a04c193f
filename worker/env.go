//go:build js && wasm

package main

import (
	"strings"
	"syscall/js"

	"weir/pkg/gateway"
)

// config reads the worker's variables and secrets. It is called at the first
// event: the platform has no environment before.
func config() gateway.Config {
	level := strings.ToLower(getenv("LOG_LEVEL"))
	return gateway.Config{
		AdminToken:     getenv("ADMIN_TOKEN"),
		KeySecret:      getenv("API_KEY_SECRET"),
		CredentialsKey: getenv("CREDENTIALS_KEY"),
		RequireKey:     !oneOf(getenv("REQUIRE_API_KEY"), "false", "0", "off", "no"),
		AllowPrivate:   oneOf(getenv("ALLOW_PRIVATE_UPSTREAMS"), "true", "1", "on", "yes"),
		Reseed:         oneOf(getenv("ALLOW_RESEED"), "true", "1", "on", "yes"),
		OAuthProviders: getenv("OAUTH_PROVIDERS"),
		PublicURL:      getenv("PUBLIC_URL"),
		ProxyURL:       getenv("PROXY_URL"),
		Quiet:          level == "warn" || level == "error",
	}
}

// getenv reads what the workers package reads too. Its own Getenv stands in a
// package that links the client and server of net/http: 1.5 MB of the program.
func getenv(name string) string {
	v := js.Global().Get("context").Get("env").Get(name)
	if v.Type() != js.TypeString {
		return ""
	}
	return v.String()
}

func oneOf(v string, words ...string) bool {
	for _, w := range words {
		if strings.EqualFold(v, w) {
			return true
		}
	}
	return false
}
