import { useState } from "preact/hooks";
import { useAction, useLoad } from "../hooks";
import { Load, Page, Section } from "../layout";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { toast } from "../toast";
import { ModelInput, noKey, SelectTool, ToolTexts, useTools } from "../tools";
import { Button, ErrorBox } from "../ui";
import { Command } from "./setup/command";

// Setup points a tool to this machine: by a command, or by settings to copy.
export default function Setup({ machine }: PageProps) {
  const tools = useTools(machine);
  const models = useLoad(() => machine.modelIds("llm"), [machine]);
  const [id, setId] = useFilter("tool", "claude-code");
  const [typedModel, setModel] = useState(""),
    [typedSmall, setSmall] = useState("");
  const save = useAction();
  return (
    <Page title="Set up" intro="Use this machine in your coding agents, apps and programs.">
      <Load of={tools} what="tools">
        {(list) => {
          const tool = list.data.find((t) => t.id === id) ?? list.data[0];
          const standard = list.model || models.data?.[0] || "",
            model = typedModel || standard,
            small = typedSmall || list.smallModel || model;
          const isDefault = model === (list.model ?? "") && small === (list.smallModel ?? list.model ?? "");
          const saveDefaults = () =>
            save.run(async () => {
              await machine.tagged("PATCH", "/settings", { defaultModel: model, smallModel: small });
              await tools.reload();
              toast("Default models saved.");
            });
          return (
            <>
              <Section title="Tool and models">
                <div class="grid">
                  <SelectTool label="Tool" tools={list.data} value={tool.id} onSelect={setId} />
                  <ModelInput
                    label="Model"
                    models={models.data ?? []}
                    value={typedModel}
                    standard={standard || "provider/model"}
                    onText={setModel}
                  />
                  <ModelInput
                    label="Small model"
                    hint="For background work such as titles."
                    models={models.data ?? []}
                    value={typedSmall}
                    standard={small || "provider/model"}
                    onText={setSmall}
                  />
                </div>
                {save.error && <ErrorBox>{save.error}</ErrorBox>}
                {model && !isDefault && (
                  <Button busy={save.busy} onClick={() => void saveDefaults()}>
                    Save as default models
                  </Button>
                )}
              </Section>
              {tool.script && (
                <Command
                  key={`${tool.id} ${model} ${small}`}
                  machine={machine}
                  tool={tool}
                  model={model}
                  small={small}
                />
              )}
              <Section
                title={tool.script ? "By hand" : "Settings"}
                intro={
                  <>
                    Replace <code>{noKey}</code> with a key of the page <a href={to(machine.id, "keys")}>Keys</a>.
                  </>
                }
              >
                <ToolTexts
                  list={list}
                  tool={tool}
                  model={model || "provider/model"}
                  small={small || "provider/model"}
                />
              </Section>
            </>
          );
        }}
      </Load>
    </Page>
  );
}
