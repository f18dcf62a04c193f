import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import { useLoad } from "../../hooks";
import { Load } from "../../layout";
import { useTools } from "../../tools";
import { Skeleton } from "../../ui";
import { LastCall } from "../connect/call";
import { Command } from "../connect/command";

// FirstTool copies the command of a tool at once, and waits for the tool's first call.
export default function FirstTool({ machine, id }: { machine: Machine; id: string }) {
  const tools = useTools(machine);
  const models = useLoad(() => machine.modelIds("llm"), [machine]);
  const [call, setCall] = useState("");
  return (
    <Load of={tools} what="tools" rows={2}>
      {(list) => {
        const tool = list.data.find((t) => t.id === id);
        if (!tool) return null;
        if (!models.data && !models.error) return <Skeleton what="models" rows={1} />;
        const model = list.model || models.data?.[0] || "";
        const small = list.smallModel || model;
        return (
          <>
            <Command machine={machine} tool={tool} model={model} small={small} call={call} atOnce />
            <LastCall machine={machine} tool={tool} onConnected={setCall} />
          </>
        );
      }}
    </Load>
  );
}
