package htmlmd

import "strings"

// endCode writes what a code or pre element held.
func (w *writer) endCode() {
	t := w.inCode
	if t == other {
		return
	}
	w.inCode = other
	code := strings.ToValidUTF8(string(w.code), "\uFFFD")
	if t == tPre {
		code = strings.Trim(strings.ReplaceAll(code, "\r\n", "\n"), "\r\n")
		if strings.TrimSpace(code) == "" {
			return
		}
		if w.cell || w.linked() {
			t = tCode
		}
	}
	if t == tCode {
		if code = oneLine(code); code == "" {
			return
		}
		if w.cell && w.markdown {
			code = strings.ReplaceAll(strings.ReplaceAll(code, `\|`, `\ |`), "|", `\|`) // not all read \\| alike
		}
		if w.markdown {
			fence := ticks(code, 1)
			if fence != "`" || code[0] == '`' {
				code = " " + code + " "
			}
			code = fence + code + fence
			if n := len(w.out); n > 0 && w.out[n-1] == '`' {
				w.space = true
			}
		}
		w.put(code)
		return
	}
	w.block(2)
	marks := w.marks // none belongs on the line of the fence
	w.marks = nil
	fence := ""
	if w.markdown {
		fence = ticks(code, 3)
		w.put(fence + w.language)
		w.block(1)
	}
	for len(code) > 0 && !w.full {
		var line string
		line, code, _ = strings.Cut(code, "\n")
		w.line(strings.TrimRight(line, " \t\r"))
	}
	if fence != "" {
		w.line(fence)
	}
	w.marks = marks
	w.block(2)
}

// ticks returns a fence longer than any in the code.
func ticks(code string, least int) string {
	run, longest := 0, 0
	for i := 0; i < len(code); i++ {
		if code[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	if longest < least {
		return "```"[:least]
	}
	if least == 1 && longest < 3 {
		return "```"[:longest+1]
	}
	return strings.Repeat("`", longest+1)
}

// line writes one line of a code block, which may be empty.
func (w *writer) line(s string) {
	if w.newlines == 0 && len(w.out) > 0 && !w.fresh {
		w.newlines = 1
	}
	w.begin()
	w.raw(s)
	w.newlines, w.fresh = 1, false
}

// language finds the language of a code block in its classes.
func language(class string) string {
	for _, c := range strings.Fields(class) {
		for _, p := range [...]string{"language-", "lang-", "highlight-source-"} {
			if l, ok := strings.CutPrefix(c, p); ok && len(l) > 0 && len(l) <= 20 && strings.IndexFunc(l, func(r rune) bool {
				return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '+' || r == '#' || r == '-')
			}) < 0 {
				return l
			}
		}
	}
	return ""
}
