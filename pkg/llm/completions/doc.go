// Package completions is OpenAI's legacy dialect of text completions: it reads
// clients' requests and writes their answers. No upstream speaks it: the prompt
// becomes a message of the user.
package completions
