package redact

// unit reads one character at text[p], in whatever escape it is written: %2d,
// %252d, \u002d, \\u002d, \/, \n, &#x2d;, &#45;, &amp;. next is where the one
// after it begins; 0 if %, \ or & begins no complete escape, or one of more than
// maxRun times. Any other byte is itself.
func unit(r *R, text string, p int) (c byte, next int) {
	switch text[p] {
	case '%':
		return percent(r, text, p)
	case '\\':
		return backslash(r, text, p)
	case '&':
		return entity(text, p)
	}
	return text[p], p + 1
}

// escaped are the ways in which a character that begins escapes goes on when
// it stands for itself.
func escaped(c byte) []string {
	switch c {
	case '&':
		return []string{"amp;", "#38;", "#x26;", "#x0026;"}
	case '%':
		return []string{"25"}
	}
	return []string{`\`}
}

// again skips what follows a backslash, & or % at text[p-1] that was escaped:
// \\, &amp; or %25. rest is what should come next.
func again(r *R, text string, p int, c byte, rest string) int {
skip:
	for range maxRun {
		r.step()
		for _, e := range escaped(c) {
			n := 0
			for n < len(e) && p+n < len(text) && text[p+n] == e[n] {
				n++
			}
			if n == len(e) && (len(rest) < n || rest[:n] != e) {
				p += n
				continue skip
			}
		}
		return p
	}
	return p
}

func percent(r *R, text string, p int) (byte, int) {
	q := p + 1
	for n := 1; q+1 < len(text) && text[q] == '2' && text[q+1] == '5'; n++ { // %25 is a % encoded again
		if n > maxRun {
			return 0, 0
		}
		r.step()
		q += 2
	}
	if q+1 >= len(text) {
		return 0, 0
	}
	hi, lo := hexDigit(text[q]), hexDigit(text[q+1])
	if hi < 0 || lo < 0 {
		return 0, 0
	}
	return byte(hi<<4 | lo), q + 2
}

func backslash(r *R, text string, p int) (byte, int) {
	q := p + 1
	for q < len(text) && text[q] == '\\' {
		if q-p == maxRun {
			return 0, 0
		}
		r.step()
		q++
	}
	if q == len(text) {
		return 0, 0
	}
	switch c := text[q]; c {
	case 'n':
		return '\n', q + 1
	case 'r':
		return '\r', q + 1
	case 't':
		return '\t', q + 1
	case 'u', 'x':
		digits := 4
		if c == 'x' {
			digits = 2
		}
		v := 0
		for i := 1; i <= digits; i++ {
			if q+i >= len(text) {
				return 0, 0
			}
			d := hexDigit(text[q+i])
			if d < 0 {
				return c, q + 1
			}
			v = v<<4 | d
		}
		if v > 0x7f {
			v = 0xff // not a character of a credential
		}
		return byte(v), q + digits + 1
	default:
		return c, q + 1
	}
}

// entities are the named ones, without & and ;.
var entities = []struct {
	name string
	c    byte
}{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"plus", '+'}, {"sol", '/'}, {"equals", '='},
	{"lowbar", '_'}, {"hyphen", '-'}}

const maxEntity = 10

func entity(text string, p int) (byte, int) {
	end := p + 1
	for end < len(text) && text[end] != ';' {
		c := text[end]
		if end-p > maxEntity || c != '#' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return 0, 0
		}
		end++
	}
	if end == len(text) {
		return 0, 0
	}
	name := string(text[p+1 : end])
	for i := range entities {
		if entities[i].name == name {
			return entities[i].c, end + 1
		}
	}
	if len(name) < 2 || name[0] != '#' {
		return 0, 0
	}
	base, digits := 10, name[1:]
	if digits[0]|0x20 == 'x' {
		base, digits = 16, digits[1:]
	}
	v := 0
	for i := 0; i < len(digits); i++ {
		d := hexDigit(digits[i])
		if d < 0 || d >= base {
			return 0, 0
		}
		v = min(v*base+d, 0xff)
	}
	return byte(v), end + 1
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
