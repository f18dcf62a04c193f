package ir

// DropThoughts removes the thoughts of the conversation and the signatures of its tool
// calls.
func (q *Request) DropThoughts() {
	for i := range q.Messages {
		m := &q.Messages[i]
		blocks := Filter(m.Blocks, func(b *Block) bool { return b.Kind != ThinkingBlock })
		if len(blocks) < len(m.Blocks) {
			q.DropField(FieldThinking)
		}
		m.Blocks = blocks
		for j := range blocks {
			if b := &blocks[j]; b.Kind == ToolCallBlock && b.Signature != "" {
				b.Signature = ""
				q.DropField(FieldThinking)
			}
		}
	}
}
