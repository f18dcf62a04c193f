# The first file has the edits, one a line: operation, path, match and value with
# tabs between. The second is the configuration.
function fill(s) {
	s = replace(s, "__URL__", ENVIRON["WEIR_URL"])
	s = replace(s, "__MODEL__", ENVIRON["WEIR_MODEL"])
	s = replace(s, "__SMALL__", ENVIRON["WEIR_SMALL"])
	return replace(s, "__KEY__", ENVIRON["WEIR_KEY"])
}
function replace(s, mark, value,    i, done) {
	while ((i = index(s, mark)) > 0) {
		done = done substr(s, 1, i - 1) value
		s = substr(s, i + length(mark))
	}
	return done s
}
# note records an edit for the user, without the key.
function note(verb, path, value) {
	gsub(/\n */, ", ", value)
	value = replace(value, "__KEY__", "(the new key)")
	print "    " verb " " fill(path) ": " fill(value) > ENVIRON["WEIR_NOTES"]
}
# emit writes the file, with the ends of lines that it had.
function emit(s) {
	if (crlf) gsub(/\n/, "\r\n", s)
	ORS = ""
	print s
}
function fail(why) {
	print why > "/dev/stderr"
	failed = 1
	exit 1
}
FILENAME == ARGV[1] {
	split($0, field, "\t")
	edits++
	op[edits] = field[1]
	path[edits] = field[2]
	match_of[edits] = field[3]
	value_of[edits] = field[4]
	while ((at = index(value_of[edits], "\\n")) > 0)
		value_of[edits] = substr(value_of[edits], 1, at - 1) "\n" substr(value_of[edits], at + 2)
	next
}
{
	crlf += sub(/\r$/, "")
	line[++lines] = $0
}
