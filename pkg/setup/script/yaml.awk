# YAML: values and lists of the top level, which begin at the start of a line.
function width(s) {
	match(s, /^ */)
	return RLENGTH
}
function blank(s) { return s ~ /^[ ]*(#.*)?$/ }
# locate sets first and end, the lines of a top-level entry and after it, or first = 0.
function locate(name,    i) {
	first = 0
	for (i = 1; i <= lines; i++)
		if (index(line[i], name ":") == 1 && substr(line[i], length(name) + 2) ~ /^([ \t]|$)/) {
			first = i
			end = i + 1
			for (i++; i <= lines; i++) {
				if (blank(line[i])) continue
				if (line[i] !~ /^( |-( |$))/) break
				end = i + 1
			}
			return
		}
}
# splice replaces the lines from up to before to.
function splice(from, to, text,    old, count, i, n, added, part) {
	count = lines
	for (i = 1; i <= count; i++) old[i] = line[i]
	n = from - 1
	added = text == "" ? 0 : split(text, part, "\n")
	for (i = 1; i <= added; i++) line[++n] = part[i]
	for (i = to; i <= count; i++) line[++n] = old[i]
	lines = n
}
# item returns the lines of a list item with an indent.
function item(text, by,    part, count, i, s) {
	count = split(text, part, "\n")
	for (i = 1; i <= count; i++) s = s (i > 1 ? "\n" : "") sprintf("%" by "s", "") (i == 1 ? "- " : "  ") part[i]
	return s
}
function put_item(n,    text, head, by, i, from, key) {
	text = fill(value_of[n])
	head = text
	sub(/\n.*/, "", head)
	locate(path[n])
	note("added", path[n], value_of[n])
	if (!first) {
		splice(lines + 1, lines + 1, path[n] ":\n" item(text, 2))
		return
	}
	key = substr(line[first], length(path[n]) + 2)
	sub(/[ \t]*(#.*)?$/, "", key)
	gsub(/[ \t]/, "", key)
	if (key == "[]") line[first] = path[n] ":"
	else if (key != "") fail(path[n] " is not a list with one item a line")
	by = 2
	for (i = first + 1; i < end; i++)
		if (!blank(line[i])) {
			if (line[i] !~ /^ *-( |$)/) fail(path[n] " is not a list")
			by = width(line[i])
			break
		}
	# An item with the same first line is replaced.
	from = 0
	for (i = first + 1; i <= end; i++) {
		if (from && (i == end || !blank(line[i]) && width(line[i]) <= by)) {
			splice(from, i, item(text, by))
			return
		}
		if (i < end && line[i] == sprintf("%" by "s", "") "- " head) from = i
	}
	splice(first + 1, first + 1, item(text, by))
}
END {
	if (failed) exit 1
	for (i = 1; i <= lines; i++) {
		if (line[i] ~ /^\t/) fail("a line begins with a tab")
		if (!blank(line[i]) && line[i] ~ /^[{[]/) fail("it is not written with one entry a line")
	}
	for (n = 1; n <= edits; n++) {
		if (op[n] == "item") {
			put_item(n)
			continue
		}
		locate(path[n])
		if (first && op[n] == "default") continue
		note(first ? "changed" : "added", path[n], value_of[n])
		if (first) splice(first, end, path[n] ": " fill(value_of[n]))
		else splice(lines + 1, lines + 1, path[n] ": " fill(value_of[n]))
	}
	out = ""
	for (i = 1; i <= lines; i++) out = out line[i] "\n"
	emit(out)
}
