package llm

// tools writes toolConfig. A conversation with calls in it must have one, so
// tools that are not offered any more are named again.
func (c *converse) tools(gen *claude, budget, forceFormat bool) {
	d, tools := c.d, c.request.tools
	if len(c.choice.allowed) > 0 {
		tools = only(tools, c.choice.allowed)
	}
	used := c.usedTools()
	if c.choice.mode == choiceNone {
		if len(used) == 0 {
			tools = nil
		} else if len(tools) > 0 {
			c.drop("tool_choice")
		}
	}
	if len(tools) == 0 && !forceFormat {
		for _, name := range used {
			tools = append(tools, tool{name: name})
		}
	}
	if len(tools) == 0 && !forceFormat {
		return
	}
	d.open("toolConfig", '{')
	d.open("tools", '[')
	for i := range tools {
		t := &tools[i]
		c.toolSpec(t.name, t.description, t.schemaOr())
		c.cachePoint(t.cache)
	}
	if forceFormat {
		c.toolSpec(formatTool, "Gives the answer.", objectSchema(c.describedSchema()))
	}
	d.close(']')
	mode, name := c.choice.mode, c.choice.name
	if forceFormat && len(tools) == 0 {
		mode, name = choiceTool, formatTool
	} else if forceFormat {
		mode = choiceAny
	}
	if len(c.request.tools) == 0 && !forceFormat {
		mode = choiceUnset
	}
	if (mode == choiceAny || mode == choiceTool) && (!c.model.force || !gen.forced || budget) {
		mode = choiceUnset
		c.drop("tool_choice")
	}
	switch mode {
	case choiceAuto:
		d.raw("toolChoice", `{"auto":{}}`)
	case choiceAny:
		d.raw("toolChoice", `{"any":{}}`)
	case choiceTool:
		d.raw("toolChoice", `{"tool":{"name":`+quoted(name)+`}}`)
	}
	d.close('}')
}

// usedTools names the tools that were called, each once.
func (c *converse) usedTools() (names []string) {
	for i := range c.request.messages {
	next:
		for j := range c.request.messages[i].blocks {
			b := &c.request.messages[i].blocks[j]
			if b.kind != toolUseBlock {
				continue
			}
			for _, n := range names {
				if n == b.name {
					continue next
				}
			}
			names = append(names, b.name)
		}
	}
	return names
}

func (c *converse) toolSpec(name, description, schema string) {
	c.d.raw("", `{"toolSpec":{`)
	c.d.str("name", name)
	c.d.opt("description", description)
	c.d.raw("inputSchema", `{"json":`+schema+`}`)
	c.d.b = append(c.d.b, "}}"...)
}
