import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import { Load } from "../../layout";
import { ModelInput, SelectTool, ToolTexts, useModelIds, useTools } from "../../tools";

// Snippets shows the settings of a client: with this gateway's address, a model of
// the machine and, right after its creation, the key.
export function Snippets({ machine, apiKey }: { machine: Machine; apiKey?: string }) {
  const tools = useTools(machine);
  const models = useModelIds(machine);
  const [id, setId] = useState("curl"),
    [typed, setModel] = useState("");
  return (
    <Load of={tools} what="clients" rows={2}>
      {(list) => {
        const tool = list.data.find((t) => t.id === id) ?? list.data[0];
        const standard = list.model || models.data?.[0] || "provider/model",
          model = typed || standard;
        return (
          <div class="stack">
            <div class="grid">
              <SelectTool label="Client" tools={list.data} value={tool.id} onSelect={setId} />
              <ModelInput
                label="Model"
                models={models.data ?? []}
                value={typed}
                standard={standard}
                onText={setModel}
              />
            </div>
            <ToolTexts list={list} tool={tool} apiKey={apiKey} model={model} small={list.smallModel || model} />
          </div>
        );
      }}
    </Load>
  );
}
