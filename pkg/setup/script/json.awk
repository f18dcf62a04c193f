# JSON with comments and trailing commas. The text between the edited values stays as
# it is. An index is that of a character of the text.

# skip returns the index of the first character from i that is neither blank nor part
# of a comment.
function skip(s, i,    c, n) {
	while (1) {
		c = substr(s, i, 1)
		if (c == " " || c == "\t" || c == "\n") i++
		else if (substr(s, i, 2) == "//") i += (n = index(substr(s, i), "\n")) ? n : length(s)
		else if (substr(s, i, 2) == "/*") {
			if (!(n = index(substr(s, i + 2), "*/"))) fail("a comment does not end")
			i += n + 3
		} else return i
	}
}
# string_end returns the index after the string that begins at i.
function string_end(s, i,    c) {
	while ((c = substr(s, ++i, 1)) != "\"") {
		if (c == "" || c == "\n") fail("a string does not end")
		if (c == "\\") i++
	}
	return i + 1
}
# value_end returns the index after the value that begins at i.
function value_end(s, i,    c, close_with) {
	c = substr(s, i, 1)
	if (c == "\"") return string_end(s, i)
	if (c != "{" && c != "[") {
		if (!match(substr(s, i, 64), /^[-+.0-9A-Za-z]+/)) fail("it is not JSON: " substr(s, i, 20))
		return i + RLENGTH
	}
	close_with = c == "{" ? "}" : "]"
	i = skip(s, i + 1)
	while ((c = substr(s, i, 1)) != close_with) {
		if (close_with == "}") {
			if (c != "\"") fail("it is not JSON: " substr(s, i, 20))
			i = skip(s, string_end(s, i))
			if (substr(s, i, 1) != ":") fail("it is not JSON: " substr(s, i, 20))
			i = skip(s, i + 1)
		}
		i = skip(s, value_end(s, i))
		c = substr(s, i, 1)
		if (c == ",") i = skip(s, i + 1)
		else if (c != close_with) fail("it is not JSON: " substr(s, i, 20))
	}
	return i + 1
}
# find looks for a member of the object at i. It sets from and to, the indexes of its
# value and after it, or from = 0 and last, the index after the last value or 0.
function find(s, i, name,    c, key) {
	from = 0
	last = 0
	i = skip(s, i + 1)
	while (substr(s, i, 1) != "}") {
		c = string_end(s, i)
		key = substr(s, i + 1, c - i - 2)
		i = skip(s, skip(s, c) + 1)
		last = value_end(s, i)
		if (key == name) {
			from = i
			to = last
			return
		}
		i = skip(s, last)
		if (substr(s, i, 1) == ",") i = skip(s, i + 1)
	}
}
function indent(n,    s) {
	while (n-- > 0) s = s "  "
	return s
}
# insert adds a text to the object or array at i, whose last value ends before last.
function insert(s, i, last, text, depth,    rest) {
	if (last) {
		rest = skip(s, last)
		if (substr(s, rest, 1) == ",") return substr(s, 1, rest) "\n" indent(depth) text substr(s, rest + 1)
		return substr(s, 1, last - 1) ",\n" indent(depth) text substr(s, last)
	}
	rest = i + 1
	while (index(" \t\n", substr(s, rest, 1)) && rest <= length(s)) rest++
	return substr(s, 1, i) "\n" indent(depth) text "\n" indent(depth - 1) substr(s, rest)
}
# change applies an edit.
function change(s, n,    parts, name, d, i, text, want, j, e) {
	parts = split(path[n], name, ".")
	i = skip(s, 1)
	for (d = 1; d <= parts; d++) {
		if (substr(s, i, 1) != "{") fail((d == 1 ? "the file" : fill(name[d - 1])) " is not an object")
		find(s, i, fill(name[d]))
		if (!from) {
			text = op[n] == "item" ? "[" value_of[n] "]" : value_of[n]
			note("added", path[n], text)
			text = fill(text)
			for (j = parts; j > d; j--)
				text = "{\n" indent(j) "\"" fill(name[j]) "\": " text "\n" indent(j - 1) "}"
			return insert(s, i, last, "\"" fill(name[d]) "\": " text, d)
		}
		i = from
	}
	if (op[n] == "default") return s
	if (op[n] == "set") {
		if (substr(s, from, to - from) == fill(value_of[n])) return s
		note("changed", path[n], value_of[n])
		return substr(s, 1, from - 1) fill(value_of[n]) substr(s, to)
	}
	if (substr(s, i, 1) != "[") fail(path[n] " is not a list")
	text = fill(value_of[n])
	find(text, 1, match_of[n])
	want = substr(text, from, to - from)
	note("added", path[n], value_of[n])
	e = 0
	for (j = skip(s, i + 1); substr(s, j, 1) != "]"; ) {
		e = value_end(s, j)
		if (substr(s, j, 1) == "{") {
			find(s, j, match_of[n])
			if (from && substr(s, from, to - from) == want) return substr(s, 1, j - 1) text substr(s, e)
		}
		j = skip(s, e)
		if (substr(s, j, 1) == ",") j = skip(s, j + 1)
	}
	return insert(s, i, e, text, parts + 1)
}
END {
	if (failed) exit 1
	for (i = 1; i <= lines; i++) s = s line[i] "\n"
	sub(/^\357\273\277/, "", s)
	if (skip(s, 1) > length(s)) s = s "{}\n"
	if (skip(s, value_end(s, skip(s, 1))) <= length(s)) fail("text follows the JSON value")
	for (n = 1; n <= edits; n++) s = change(s, n)
	emit(s)
}
