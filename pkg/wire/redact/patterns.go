package redact

import "strings"

// token is a credential that is recognized by its prefix.
type token struct {
	prefix string
	least  int             // characters that follow
	of     func(byte) bool // them; nil is tokenByte
}

// tokens are the beginnings that vendors document for their keys: those of the table of
// providers, those of gitleaks' rules for other services that stand in prompts, and
// weir's own. In no order. See docs/reference/reliability.md, 3.7.
var tokens = []token{
	// Providers of models.
	{prefix: "sk-", least: 16}, {prefix: "gsk_", least: 16}, {prefix: "xai-", least: 16}, {prefix: "ek_", least: 16},
	{prefix: "AIza", least: 30}, {prefix: "ya29.", least: 8}, {prefix: "1//0", least: 8}, {prefix: "AQ.A", least: 30},
	{prefix: "hf_", least: 16}, {prefix: "pplx-", least: 16}, {prefix: "fw_", least: 16}, {prefix: "jina_", least: 16},
	{prefix: "tvly-", least: 16}, {prefix: "r8_", least: 16}, {prefix: "nvapi-", least: 16}, {prefix: "csk-", least: 16},
	{prefix: "tgp_v1_", least: 16}, {prefix: "pa-", least: 40}, {prefix: "luma-", least: 30}, {prefix: "sk_", least: 16},
	{prefix: "fc-", least: 30, of: isHexByte}, {prefix: "ABSK", least: 40}, {prefix: "bedrock-api-key-", least: 16},
	{prefix: "AKIA", least: 16, of: upperDigit}, {prefix: "ASIA", least: 16, of: upperDigit}, {prefix: "v1.0-", least: 16},
	{prefix: "key_", least: 64}, {prefix: "BSA", least: 26}, {prefix: "al-", least: 40}, {prefix: "api_org_", least: 30},
	{prefix: "GOCSPX-", least: 20},
	// Other services.
	{prefix: "ghp_", least: 16}, {prefix: "gho_", least: 16}, {prefix: "ghu_", least: 16}, {prefix: "ghs_", least: 16},
	{prefix: "ghr_", least: 16}, {prefix: "github_pat_", least: 16}, {prefix: "glpat-", least: 16},
	{prefix: "glptt-", least: 16},
	{prefix: "xoxb-", least: 10}, {prefix: "xoxp-", least: 10}, {prefix: "xoxa-", least: 10}, {prefix: "xoxr-", least: 10},
	{prefix: "xoxs-", least: 10}, {prefix: "xoxe-", least: 10}, {prefix: "xoxe.", least: 10}, {prefix: "xapp-", least: 10},
	{prefix: "rk_live_", least: 10}, {prefix: "rk_test_", least: 10}, {prefix: "whsec_", least: 16},
	{prefix: "npm_", least: 30},
	{prefix: "SG.", least: 30}, {prefix: "dop_v1_", least: 16}, {prefix: "doo_v1_", least: 16},
	{prefix: "dor_v1_", least: 16},
	{prefix: "dapi", least: 32, of: isHexByte}, {prefix: "pypi-", least: 40}, {prefix: "SK", least: 32, of: isHexByte},
	{prefix: "lin_api_", least: 16}, {prefix: "ntn_", least: 30}, {prefix: "shpat_", least: 16},
	{prefix: "hvs.", least: 16},
	{prefix: "dckr_pat_", least: 16}, {prefix: "sntrys_", least: 16}, {prefix: "LTAI", least: 16},
	{prefix: "ATATT3", least: 60}, {prefix: "glsa_", least: 32}, {prefix: "dckr_oat_", least: 16},
	{prefix: "sbp_", least: 40},
	{prefix: "NRAK-", least: 27}, {prefix: "pscale_tkn_", least: 30}, {prefix: "rubygems_", least: 40},
	{prefix: "phx_", least: 40},
	{prefix: "eyJ", least: 16},
	// weir: keys of earlier versions, leases of set-up commands, codes of sign-in links, sign-in tokens and
	// invitations of people, sessions of programs.
	{prefix: "gw1_", least: 8}, {prefix: "setup-", least: 40}, {prefix: "once-", least: 40},
	{prefix: "wp_", least: 40}, {prefix: "wi_", least: 40}, {prefix: "wt_registry.", least: 40},
}

// names whose value is a credential, in lower case; - stands for "-", "_" or nothing. A
// name that begins with another one stands before it. bare names need a separator of
// = or : after them.
var names = []string{
	"bearer", "api-key", "access-token", "refresh-token", "id-token", "session-token", "security-token", "auth-token",
	"client-secret", "aws-secret-access-key", "secret-access-key", "secret-key", "private-key-id", "private-key",
	"password", "authorization", "set-cookie", "cookie", "code",
}

const minNamed = 8 // characters of a named value

// Patterns returns s without what looks like a credential: tokens known by their
// beginning, values behind a telling name, private key blocks, and user and
// password in an address.
func Patterns(s string) string {
	var b strings.Builder
	done := 0
	for p := 0; p < len(s); {
		if p > done && wordByte(s[p-1]) && s[p] != ':' && !escapeEnd(s[:p]) { // only where a word begins
			p++
			continue
		}
		from, to := credentialAt(s, p)
		if to == 0 {
			p++
			continue
		}
		b.WriteString(s[done:from])
		b.WriteString(Mask)
		done, p = to, to
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// credentialAt returns the span to mask of a credential that begins at s[p], or
// zeros.
func credentialAt(s string, p int) (from, to int) {
	switch s[p] {
	case '-':
		return keyBlock(s, p)
	case ':':
		return userinfo(s, p)
	}
	for i := range tokens {
		t := &tokens[i]
		if s[p] == t.prefix[0] && strings.HasPrefix(s[p:], t.prefix) {
			to := p + len(t.prefix)
			of := t.of
			if of == nil {
				of = tokenByte
			}
			for to < len(s) && of(s[to]) {
				to++
			}
			if to-p-len(t.prefix) >= t.least {
				return p, to
			}
		}
	}
	return named(s, p)
}

// named finds `api_key": "…`, `Bearer …`, `code=…&`, and all pairs of a cookie.
func named(s string, p int) (from, to int) {
	for _, name := range names {
		q := after(s, p, name)
		if q == 0 {
			continue
		}
		sep := q
		marked := false
		for sep < len(s) && sep-q < 16 {
			switch s[sep] {
			case '=', ':':
				marked = true
			case ' ', '\t', '\n', '\r', '"', '\'', '\\':
			default:
				goto value
			}
			sep++
		}
	value:
		if sep == q || !marked && name != "bearer" && name != "api-key" || name == "code" && s[q] != '=' {
			return 0, 0 // an error's "code": "…" is not a secret
		}
		if name == "authorization" { // the scheme is not the secret
			if i := strings.IndexByte(s[sep:min(len(s), sep+12)], ' '); i > 0 {
				sep += i + 1
			}
		}
		end := sep
		cookie := strings.HasSuffix(name, "cookie")
		for end < len(s) && (valueByte(s[end]) || cookie && s[end] == ' ') {
			end++
		}
		if cookie && !strings.Contains(s[sep:end], "=") {
			return 0, 0 // "cookie: not set"
		}
		if !marked && !strings.ContainsAny(s[sep:end], "0123456789") {
			return 0, 0 // "api key provided", "bearer authentication"
		}
		if end-sep < minNamed {
			return 0, 0
		}
		return sep, end
	}
	return 0, 0
}

// after returns the end of name at s[p], whatever the case of its letters, or 0.
func after(s string, p int, name string) int {
	for i := 0; i < len(name); i++ {
		if name[i] == '-' {
			if p < len(s) && (s[p] == '-' || s[p] == '_' || s[p] == ' ') {
				p++
			}
			continue
		}
		if p >= len(s) || s[p]|0x20 != name[i] {
			return 0
		}
		p++
	}
	return p
}

// keyBlock finds a PEM private key, to its end or the text's.
func keyBlock(s string, p int) (from, to int) {
	const begin, key, end = "-----BEGIN ", "PRIVATE KEY-----", "-----END "
	if !strings.HasPrefix(s[p:], begin) {
		return 0, 0
	}
	head := s[p:min(len(s), p+64)]
	if !strings.Contains(head, key) {
		return 0, 0
	}
	block, rest, ended := strings.Cut(s[p:], end)
	if !ended {
		return p, len(s)
	}
	to = p + len(block) + len(end)
	if label, _, ok := strings.Cut(rest, "-----"); ok && len(label) < 40 {
		to += len(label) + len("-----")
	}
	return p, to
}

// userinfo finds user:password@ behind the scheme whose colon is at s[p].
func userinfo(s string, p int) (from, to int) {
	if !strings.HasPrefix(s[p:], "://") {
		return 0, 0
	}
	colon := false
	for q := p + 3; q < len(s); q++ {
		switch c := s[q]; {
		case c == '@':
			if colon && q > p+4 {
				return p + 3, q
			}
			return 0, 0
		case c == ':':
			colon = true
		case c == '/' || c <= ' ' || c == '"' || c == '<':
			return 0, 0
		}
	}
	return 0, 0
}

// escapeEnd reports whether s ends with an escape of JSON or of an address, after which
// a word may begin: \n, \u000a, %20.
func escapeEnd(s string) bool {
	n := len(s)
	switch {
	case n >= 2 && s[n-2] == '\\':
		return strings.IndexByte("nrtbf", s[n-1]) >= 0
	case n >= 3 && s[n-3] == '%':
		return isHex(s[n-2:])
	case n >= 6 && s[n-6] == '\\' && s[n-5] == 'u':
		return isHex(s[n-4:])
	}
	return false
}

func isHex(s string) bool {
	for i := range len(s) {
		if !isHexByte(s[i]) {
			return false
		}
	}
	return true
}

func isHexByte(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func wordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func upperDigit(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' }
func tokenByte(c byte) bool {
	return wordByte(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '*'
}

func valueByte(c byte) bool {
	return c > ' ' && c != '"' && c != '\'' && c != ',' && c != '&' && c != '}' && c != ']' && c != '<' && c != '\\' &&
		c != 0x7f
}
