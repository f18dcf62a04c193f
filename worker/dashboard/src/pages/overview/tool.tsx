import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import { useLoad } from "../../hooks";
import { Load } from "../../layout";
import { to } from "../../route";
import { useTools } from "../../tools";
import { Notice, Skeleton } from "../../ui";
import { LastCall } from "../connect/call";
import { Command } from "../connect/command";

// FirstTool copies the command of a tool at once, and waits for the tool's first call. Its model is
// the machine's, else the one that has answered, else the first.
export default function FirstTool({ machine, id, answered }: { machine: Machine; id: string; answered: string }) {
  const tools = useTools(machine);
  const models = useLoad(() => machine.modelIds("llm"), [machine]);
  const [call, setCall] = useState("");
  return (
    <Load of={tools} what="tools" rows={2}>
      {(list) => {
        const tool = list.data.find((t) => t.id === id);
        if (!tool) return null;
        if (!models.data && !models.error) return <Skeleton what="models" rows={1} />;
        const model = list.model || (models.data?.includes(answered) ? answered : models.data?.[0]) || "";
        if (!model)
          return (
            <Notice kind="warn">
              The accounts list no models yet. <a href={to(machine.id, "models")}>Add a model</a>, or type one at{" "}
              <a href={to(machine.id, "connect", id)}>{tool.name}</a>.
            </Notice>
          );
        const small = list.smallModel || model;
        return (
          <>
            <Command machine={machine} tool={tool} model={model} small={small} call={call} atOnce>
              <p class="muted small">
                Model: <code>{model}</code>. <a href={to(machine.id, "connect", id)}>Choose another</a>
              </p>
            </Command>
            <LastCall machine={machine} tool={tool} onConnected={setCall} />
          </>
        );
      }}
    </Load>
  );
}
