package converse

import "weir/pkg/llm/ir"

// tools writes toolConfig. A conversation with calls must have one, so tools
// that are no longer offered are declared by name.
func (c *requestWriter) tools(gen *ir.ClaudeModel, budget, forceFormat bool) {
	d, tools := c.d, c.Request.Tools
	if len(c.ToolChoice.Allowed) > 0 {
		tools = ir.FilterTools(tools, c.ToolChoice.Allowed)
	}
	used := c.usedTools()
	if c.ToolChoice.Mode == ir.ChoiceNone {
		if len(used) == 0 {
			tools = nil
		} else if len(tools) > 0 {
			c.Drop("tool_choice")
		}
	}
	if len(tools) == 0 && !forceFormat {
		for _, name := range used {
			tools = append(tools, ir.Tool{Name: name})
		}
	}
	if len(tools) == 0 && !forceFormat {
		return
	}
	d.Open("toolConfig", '{')
	d.Open("tools", '[')
	for i := range tools {
		t := &tools[i]
		c.toolSpec(t.Name, t.Description, t.SchemaOrEmpty())
		c.cachePoint(t.Cache)
	}
	if forceFormat {
		c.toolSpec(ir.FormatTool, "Returns the answer.", ir.ObjectSchema(c.DescribedSchema()))
	}
	d.Close(']')
	mode, name := c.ToolChoice.Mode, c.ToolChoice.Name
	if forceFormat && len(tools) == 0 {
		mode, name = ir.ChoiceTool, ir.FormatTool
	} else if forceFormat {
		mode = ir.ChoiceAny
	}
	if len(c.Request.Tools) == 0 && !forceFormat {
		mode = ir.ChoiceUnset
	}
	if (mode == ir.ChoiceAny || mode == ir.ChoiceTool) && (!c.model.force || !gen.Forced || budget) {
		mode = ir.ChoiceUnset
		c.Drop("tool_choice")
	}
	switch mode {
	case ir.ChoiceAuto:
		d.Raw("toolChoice", `{"auto":{}}`)
	case ir.ChoiceAny:
		d.Raw("toolChoice", `{"any":{}}`)
	case ir.ChoiceTool:
		d.Raw("toolChoice", `{"tool":{"name":`+ir.Quote(name)+`}}`)
	}
	d.Close('}')
}

// usedTools returns the names of the tools that were called, each once.
func (c *requestWriter) usedTools() (names []string) {
	for i := range c.Request.Messages {
	next:
		for j := range c.Request.Messages[i].Blocks {
			b := &c.Request.Messages[i].Blocks[j]
			if b.Kind != ir.ToolCallBlock {
				continue
			}
			for _, n := range names {
				if n == b.Name {
					continue next
				}
			}
			names = append(names, b.Name)
		}
	}
	return names
}

func (c *requestWriter) toolSpec(name, description, schema string) {
	c.d.Raw("", `{"toolSpec":{`)
	c.d.Str("name", name)
	c.d.OptStr("description", description)
	c.d.Raw("inputSchema", `{"json":`+schema+`}`)
	c.d.Buf = append(c.d.Buf, "}}"...)
}
