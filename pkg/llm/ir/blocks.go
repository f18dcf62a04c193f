package ir

import "strings"

// JoinTexts joins the texts of the text blocks.
func JoinTexts(blocks []Block, sep string) string {
	var j Joiner
	for i := range blocks {
		if b := &blocks[i]; b.Kind == TextBlock {
			j.Add(sep, b.Text)
		}
	}
	return j.Text()
}

// ResultText returns a tool's result as one text.
func ResultText(b *Block) string {
	text := JoinTexts(b.Parts, "\n")
	if text == "" {
		for _, p := range b.Parts {
			if p.Kind != TextBlock {
				text = "(see the attached content)"
			}
		}
	}
	if b.IsError {
		return "Error: " + text
	}
	return text
}

// WithoutResults returns the blocks that are not tool results.
func WithoutResults(blocks []Block) []Block {
	return Filter(blocks, func(b *Block) bool { return b.Kind != ToolResultBlock })
}

// Filter returns the blocks for which wanted returns true.
func Filter(blocks []Block, wanted func(*Block) bool) []Block {
	n := 0
	for i := range blocks {
		if wanted(&blocks[i]) {
			n++
		}
	}
	if n == 0 || n == len(blocks) {
		return blocks[:n]
	}
	picked := make([]Block, 0, n)
	for i := range blocks {
		if wanted(&blocks[i]) {
			picked = append(picked, blocks[i])
		}
	}
	return picked
}

// Turn returns the leading messages of one turn: of the model, or of the user
// and the system.
func Turn(list []Message) []Message {
	for n := range list {
		if (list[n].Role == RoleAssistant) != (list[0].Role == RoleAssistant) {
			return list[:n]
		}
	}
	return list
}

// ResultsFirst calls f for each block of a turn, tool results first, until it
// returns an error.
func ResultsFirst(turn []Message, f func(b *Block) error) error {
	for _, results := range [...]bool{true, false} {
		for m := range turn {
			for j := range turn[m].Blocks {
				if b := &turn[m].Blocks[j]; (b.Kind == ToolResultBlock) == results {
					if err := f(b); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// TrimPrefill removes white space from the end of a prefill, where it is
// refused.
func TrimPrefill(turn []Message) {
	for len(turn) > 0 {
		blocks := turn[len(turn)-1].Blocks
		if n := len(blocks); n > 0 {
			if blocks[n-1].Kind == TextBlock {
				blocks[n-1].Text = strings.TrimRight(blocks[n-1].Text, " \t\r\n")
			}
			return
		}
		turn = turn[:len(turn)-1]
	}
}
