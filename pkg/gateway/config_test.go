package gateway

import (
	"strings"
	"testing"

	"weir/pkg/machine/deliver"
)

func TestVariablesAreRead(t *testing.T) {
	none := ReadConfig(func(string) string { return "" })
	if none.PricesURL != "https://models.dev/api.json" {
		t.Errorf("prices come from %q", none.PricesURL)
	}
	for _, variables := range []map[string]string{{"PRICES_URL": "OFF"}, {"PRICES_KEY": "j"}} {
		if c := ReadConfig(func(name string) string { return variables[name] }); c.PricesURL != "" {
			t.Errorf("%v: prices come from %q", variables, c.PricesURL)
		}
	}
	if !none.RequireKey || none.AllowPrivate || none.Reseed || !none.Quiet {
		t.Errorf("defaults: %+v", none)
	}
	set := map[string]string{
		"ADMIN_TOKEN": "a", "API_KEY_SECRET": "b", "CREDENTIALS_KEY": "c", "REQUIRE_API_KEY": "Off", "ALLOW_PRIVATE_UPSTREAMS": "YES",
		"ALLOW_RESEED": "1", "OAUTH_PROVIDERS": "d", "OAUTH_PROVIDERS_3": "g", "OAUTH_PROVIDERS_16": "h", "PUBLIC_URL": "e", "PROXY_URL": "f",
		"PRICES_URL": "i", "PRICES_KEY": "j", "OTEL_EXPORTER_OTLP_ENDPOINT": "k",
	}
	want := Config{
		AdminToken: "a", KeySecret: "b", CredentialsKey: "c", AllowPrivate: true, Reseed: true,
		OAuthProviders: [MaxOAuthLists]string{0: "d", 2: "g", 15: "h"}, PublicURL: "e", ProxyURL: "f", PricesURL: "i", PricesKey: "j", Quiet: true,
		OTel: deliver.EnvironmentValues{"k"},
	}
	if got := ReadConfig(func(name string) string { return set[name] }); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCheckNamesTheSetting(t *testing.T) {
	usable := Config{AdminToken: strings.Repeat("a", 32), KeySecret: strings.Repeat("b", 32), CredentialsKey: strings.Repeat("c", 32)}
	if err := usable.Check(); err != nil {
		t.Errorf("usable settings: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"ADMIN_TOKEN":       func(c *Config) { c.AdminToken = "short" },
		"CREDENTIALS_KEY":   func(c *Config) { c.CredentialsKey = strings.Repeat("c", 32) + ",short" },
		"PUBLIC_URL":        func(c *Config) { c.PublicURL = "https://weir.example/path" },
		"PROXY_URL":         func(c *Config) { c.ProxyURL = "socks5://proxy" },
		"PRICES_URL":        func(c *Config) { c.PricesURL = "http://prices.example/p.json" },
		"PRICES_URL: base":  func(c *Config) { c.PricesURL = "https://127.0.0.1/p.json" },
		"PRICES_KEY":        func(c *Config) { c.PricesURL, c.PricesKey = "https://prices.example/p.json", "abc" },
		"LOG_LEVEL":         func(c *Config) { c.LogLevel = "verbose" },
		"PRICES_KEY: it is": func(c *Config) { c.PricesKey = strings.Repeat("A", 43) + "=" },
	} {
		c := usable
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A line for each call costs on both platforms, so it must be asked for.
func TestSuccessesAreLoggedOnRequestOnly(t *testing.T) {
	for level, quiet := range map[string]bool{"": true, "warn": true, "error": true, "info": false, "Debug": false, "loud": true} {
		c := ReadConfig(func(name string) string { return map[string]string{"LOG_LEVEL": level}[name] })
		if c.Quiet != quiet {
			t.Errorf("LOG_LEVEL=%q: quiet is %t, want %t", level, c.Quiet, quiet)
		}
	}
}
