package gateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/pkg/machine/deliver"
)

// Config is what the operator sets. The three secrets have at least 32 bytes.
type Config struct {
	AdminToken     string // ADMIN_TOKEN
	KeySecret      string // API_KEY_SECRET
	CredentialsKey string // CREDENTIALS_KEY; two, separated by a comma, while one replaces the other
	RequireKey     bool   // REQUIRE_API_KEY, on unless "false"
	AllowPrivate   bool   // ALLOW_PRIVATE_UPSTREAMS
	Reseed         bool   // ALLOW_RESEED
	// OAuthProviders are the lists of OAUTH_PROVIDERS, OAUTH_PROVIDERS_2 and so on,
	// each the JSON of oauth.ParseProviders; see OAuthVariable.
	OAuthProviders [MaxOAuthLists]string
	PublicURL      string // PUBLIC_URL, scheme and host that the gateway is reached at
	ProxyURL       string // PROXY_URL; http://user:password@host:port, for token refresh; "" for none
	PricesURL      string // PRICES_URL, where prices are refreshed from; "" for nowhere, which is "off"
	PricesKey      string // PRICES_KEY, the Ed25519 public key that signs them; "" for unsigned ones
	Version        string // of the build; the platform sets it
	// OTel are the variables of OpenTelemetry, which name a collector for all machines.
	OTel      deliver.EnvironmentValues
	MaxMemory int64  // bytes of large bodies and answers in memory, see memory.Budget; 0 is its default
	LogLevel  string // LOG_LEVEL: debug, info, warn or error; "" is warn
	Quiet     bool   // no log line for a success, unless LogLevel is info or debug
}

// MaxOAuthLists is how many variables may have lists of OAuth clients. Each has at
// most 5 KB on the edge platform, which is about 8 clients.
const MaxOAuthLists = 16

// OAuthVariable returns the name of the variable with the list of that index.
func OAuthVariable(i int) string {
	if i == 0 {
		return "OAUTH_PROVIDERS"
	}
	return "OAUTH_PROVIDERS_" + strconv.Itoa(i+1)
}

// OTelVariables returns the names of the variables of OpenTelemetry that are read.
func OTelVariables() deliver.EnvironmentValues { return deliver.EnvironmentVariables() }

// ReadConfig returns the settings of the variables, the same on every platform.
// variable returns "" for one that is not set.
func ReadConfig(variable func(name string) string) Config {
	c := Config{
		AdminToken:     variable("ADMIN_TOKEN"),
		KeySecret:      variable("API_KEY_SECRET"),
		CredentialsKey: variable("CREDENTIALS_KEY"),
		RequireKey:     !oneOf(variable("REQUIRE_API_KEY"), "false", "0", "off", "no"),
		AllowPrivate:   oneOf(variable("ALLOW_PRIVATE_UPSTREAMS"), "true", "1", "on", "yes"),
		Reseed:         oneOf(variable("ALLOW_RESEED"), "true", "1", "on", "yes"),
		PublicURL:      variable("PUBLIC_URL"),
		ProxyURL:       variable("PROXY_URL"),
		PricesURL:      pricesURL(variable("PRICES_URL"), variable("PRICES_KEY")),
		PricesKey:      variable("PRICES_KEY"),
		LogLevel:       variable("LOG_LEVEL"),
		Quiet:          !oneOf(variable("LOG_LEVEL"), "info", "debug"),
	}
	for i := range c.OAuthProviders {
		c.OAuthProviders[i] = variable(OAuthVariable(i))
	}
	for i, name := range deliver.EnvironmentVariables() {
		c.OTel[i] = variable(name)
	}
	return c
}

// defaultPrices is where prices come from unless PRICES_URL is set. It is not signed.
const defaultPrices = "https://models.dev/api.json"

// pricesURL reads PRICES_URL.
func pricesURL(url, key string) string {
	switch {
	case oneOf(strings.TrimSpace(url), "off", "false", "0", "no"):
		return ""
	case url == "" && key == "":
		return defaultPrices
	}
	return url
}

// level returns an error for an unknown LOG_LEVEL.
func (c *Config) level() error {
	if oneOf(c.LogLevel, "", "debug", "info", "warn", "error") {
		return nil
	}
	return fmt.Errorf("LOG_LEVEL: %q must be debug, info, warn or error", c.LogLevel)
}

// oneOf reports whether v is one of values, in any case.
func oneOf(v string, values ...string) bool {
	return slices.ContainsFunc(values, func(w string) bool { return strings.EqualFold(v, w) })
}

// Check returns an error that names the first setting that New cannot use, for a
// platform that refuses to start then. A mistake in OAUTH_PROVIDERS does not count: it
// disables its row.
func (c *Config) Check() error {
	w := &wiring{Config: *c}
	if missing := c.missing(); missing != "" {
		return fmt.Errorf("%s: missing or shorter than %d bytes", missing, minSecret)
	}
	errs := w.read()
	switch {
	case errs.public != nil:
		return errs.public
	case errs.proxy != nil:
		return fmt.Errorf("PROXY_URL: %w", errs.proxy)
	case errs.prices != nil:
		return errs.prices
	case errs.level != nil:
		return errs.level
	}
	if name := w.unusable(errs); name != "" {
		return fmt.Errorf("%s: invalid", name)
	}
	return nil
}
