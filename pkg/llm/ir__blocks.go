package llm

import "strings"

func joinTexts(blocks []block, sep string) string {
	var j joined
	for i := range blocks {
		if b := &blocks[i]; b.kind == textBlock {
			j.add(sep, b.text)
		}
	}
	return j.text()
}

// resultText flattens a tool's result.
func resultText(b *block) string {
	text := joinTexts(b.parts, "\n")
	if text == "" {
		for _, p := range b.parts {
			if p.kind != textBlock {
				text = "(see the attached content)"
			}
		}
	}
	if b.failed {
		return "Error: " + text
	}
	return text
}

// withoutResults returns the blocks that are not tool results.
func withoutResults(blocks []block) []block {
	return pick(blocks, func(b *block) bool { return b.kind != toolResultBlock })
}

// pick returns the blocks that are wanted.
func pick(blocks []block, wanted func(*block) bool) []block {
	n := 0
	for i := range blocks {
		if wanted(&blocks[i]) {
			n++
		}
	}
	if n == 0 || n == len(blocks) {
		return blocks[:n]
	}
	picked := make([]block, 0, n)
	for i := range blocks {
		if wanted(&blocks[i]) {
			picked = append(picked, blocks[i])
		}
	}
	return picked
}

// turnOf returns the leading messages of one turn: of the model, or of the user
// and the system.
func turnOf(list []message) []message {
	for n := range list {
		if (list[n].role == assistant) != (list[0].role == assistant) {
			return list[:n]
		}
	}
	return list
}

// resultsFirst calls f for each block of a turn, tool results first, until it
// returns an error.
func resultsFirst(turn []message, f func(b *block) error) error {
	for _, results := range [...]bool{true, false} {
		for m := range turn {
			for j := range turn[m].blocks {
				if b := &turn[m].blocks[j]; (b.kind == toolResultBlock) == results {
					if err := f(b); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// trimLast takes the blanks off the end of a prefill, which are refused.
func trimLast(turn []message) {
	for len(turn) > 0 {
		blocks := turn[len(turn)-1].blocks
		if n := len(blocks); n > 0 {
			if blocks[n-1].kind == textBlock {
				blocks[n-1].text = strings.TrimRight(blocks[n-1].text, " \t\r\n")
			}
			return
		}
		turn = turn[:len(turn)-1]
	}
}
