# TOML: values of the top level, and whole tables. A table is written again at the end
# of the file; its comments stay where they were.
function is_header(s) { return s ~ /^[ \t]*\[\[?[^],=]+\]\]?[ \t]*(#.*)?$/ }
function header(s) {
	sub(/#.*$/, "", s)
	gsub(/[][ \t"]/, "", s)
	return s
}
# quotes returns how many times a line has the mark of a string of several lines.
function quotes(s,    n) {
	while (index(s, "\"\"\"")) {
		s = substr(s, index(s, "\"\"\"") + 3)
		n++
	}
	return n
}
END {
	if (failed) exit 1
	for (n = 1; n <= edits; n++) {
		at = 0
		for (i = 1; i <= length(path[n]); i++) if (substr(path[n], i, 1) == ".") at = i
		table[n] = at ? substr(path[n], 1, at - 1) : ""
		name[n] = substr(path[n], at + 1)
		if (at && !(table[n] in body)) order[++tables] = table[n]
		if (at) body[table[n]] = body[table[n]] name[n] " = " fill(value_of[n]) "\n"
	}
	top = 1
	for (i = 1; i <= lines; i++) {
		s = line[i]
		within = quoted
		if (quotes(s) % 2) quoted = !quoted
		if (!within && is_header(s)) {
			top = 0
			dropping = header(s) in body
			if (dropping) {
				seen[header(s)] = 1
				continue
			}
		}
		if (top && !within) {
			if (s ~ /^[ \t]*model_providers[ \t]*[.=]/) fail("model_providers is not written as a table")
			for (n = 1; n <= edits; n++)
				if (table[n] == "" && s ~ ("^[ \t]*\"?" name[n] "\"?[ \t]*=")) {
					if (quoted) fail(name[n] " has several lines")
					s = name[n] " = " fill(value_of[n])
					seen[n] = 1
				}
		}
		if (dropping && (within || s !~ /^[ \t]*(#.*)?$/)) continue
		out = out s "\n"
	}
	for (n = 1; n <= edits; n++) {
		if (table[n] != "") note((table[n] in seen) ? "changed" : "added", path[n], value_of[n])
		else {
			note((n in seen) ? "changed" : "added", path[n], value_of[n])
			if (!(n in seen)) head = head name[n] " = " fill(value_of[n]) "\n"
		}
	}
	if (head != "" && out != "") head = head "\n"
	sub(/\n\n+$/, "\n", out)
	for (i = 1; i <= tables; i++) out = out (head out == "" ? "" : "\n") "[" order[i] "]\n" body[order[i]]
	emit(head out)
}
