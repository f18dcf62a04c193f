# Lines NAME=value. Of repeated lines the last one counts, and all are replaced.
END {
	if (failed) exit 1
	for (n = 1; n <= edits; n++) {
		done = 0
		for (i = 1; i <= lines; i++) {
			s = line[i]
			sub(/^[ \t]*(export[ \t]+)?/, "", s)
			if (s ~ ("^" path[n] "[ \t]*=")) {
				line[i] = path[n] "=" fill(value_of[n])
				done = 1
			}
		}
		if (!done) line[++lines] = path[n] "=" fill(value_of[n])
		note(done ? "changed" : "added", path[n], value_of[n])
	}
	out = ""
	for (i = 1; i <= lines; i++) out = out line[i] "\n"
	emit(out)
}
