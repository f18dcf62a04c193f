import { useState } from "preact/hooks";
import type { Machine } from "../api";
import type { KeyRow, ToolList, ToolRow } from "../api-types";
import { Search } from "../forms";
import { when } from "../format";
import { useAction, useLoad } from "../hooks";
import { Load, Page, Section } from "../layout";
import { marksOf } from "../marks";
import { Monogram } from "../monogram";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { toast } from "../toast";
import { ModelInput, noKey, ToolTexts, toolKinds, useModelIds, useTools } from "../tools";
import { Button, Empty, ErrorBox, Notice, Skeleton } from "../ui";
import { LastCall, lastUsed } from "./connect/call";
import { Command } from "./connect/command";
import "../tiles.css";

// Connect are the tools that can use this machine; below its address stands each tool
// (its id).
export default function Connect({ machine, args: [id] }: PageProps) {
  const tools = useTools(machine);
  const tool = tools.data?.data.find((t) => t.id === id);
  return (
    <Page
      key={id}
      title={tool ? `Connect ${tool.name}` : "Connect a tool"}
      intro={id ? undefined : "Use this machine in your coding agents, apps and programs."}
      actions={
        id && (
          <>
            {tool && (
              <a class="button quiet" href={`/docs/guides/${tool.id}`}>
                Guide
              </a>
            )}
            <a class="button" href={to(machine.id, "connect")}>
              All tools
            </a>
          </>
        )
      }
    >
      <Load of={tools} what="tools" rows={6}>
        {(list) =>
          tool ? (
            <Tool machine={machine} list={list} tool={tool} onChange={tools.reload} />
          ) : id ? (
            <Empty title="Tool not found" />
          ) : (
            <Tools machine={machine} list={list} />
          )
        }
      </Load>
    </Page>
  );
}

// Tools shows a tile for each tool.
function Tools({ machine, list }: { machine: Machine; list: ToolList }) {
  const keys = useLoad(() => machine.list<KeyRow>("/keys"), [machine]);
  const [search, setSearch] = useFilter("q", "");
  const query = search.trim().toLowerCase();
  const marks = marksOf(list.data);
  const shown = list.data.filter((t) => `${t.name} ${t.id}`.toLowerCase().includes(query));
  return (
    <>
      <Search label="Search tools" value={search} onInput={setSearch} />
      {shown.length === 0 && (
        <Empty title="No tools found">
          <p>
            Any client of the OpenAI, Anthropic or Gemini API works. Set its base URL to{" "}
            <code>{location.origin}/v1</code>.
          </p>
        </Empty>
      )}
      {toolKinds.map(([kind, title]) => {
        const of = shown.filter((t) => t.kind === kind);
        return (
          of.length > 0 && (
            <section key={kind} class="stack" aria-label={title}>
              <h2>{title}</h2>
              <ul class="tiles">
                {of.map((t) => (
                  <li key={t.id}>
                    <Tile
                      machine={machine}
                      tool={t}
                      mark={marks.get(t.id)}
                      used={lastUsed(t, keys.data ?? [])?.lastUsedAt}
                    />
                  </li>
                ))}
              </ul>
            </section>
          )
        );
      })}
    </>
  );
}

function Tile({ machine, tool, mark, used }: { machine: Machine; tool: ToolRow; mark?: string; used?: number }) {
  return (
    <a class="button tile" href={to(machine.id, "connect", tool.id)}>
      <Monogram letters={mark} />
      <span class="about">
        <strong>{tool.name}</strong>
        <small>
          {tool.script ? "One command" : "Settings to copy"}
          {used && (
            <span class="good" title={`Last request ${when(used)}`}>
              {" "}
              · Connected
            </span>
          )}
        </small>
      </span>
    </a>
  );
}

// Tool points a tool to this machine: by a command, or by settings to copy.
function Tool({
  machine,
  list,
  tool,
  onChange,
}: {
  machine: Machine;
  list: ToolList;
  tool: ToolRow;
  onChange: () => Promise<void>;
}) {
  const models = useModelIds(machine);
  const [typedModel, setModel] = useState(""),
    [typedSmall, setSmall] = useState(""),
    [call, setCall] = useState("");
  const save = useAction();
  const standard = list.model || models.data?.[0] || "",
    model = typedModel || standard,
    small = typedSmall || list.smallModel || model;
  const isDefault = model === (list.model ?? "") && small === (list.smallModel ?? list.model ?? "");
  const saveDefaults = () =>
    save.run(async () => {
      await machine.tagged("PATCH", "/settings", { defaultModel: model, smallModel: small });
      await onChange();
      toast("Default models saved.");
    });
  const manual = <Manual machine={machine} list={list} tool={tool} model={model} small={small} />;
  const local = location.protocol !== "https:" || /^(localhost|127\.|\[)/.test(location.hostname);
  return (
    <>
      {tool.public && local && (
        <Notice kind="warn">
          {tool.name}’s servers make the calls, and cannot reach <code>{location.origin}</code>. Open the dashboard at a
          public https:// address, such as that of <a href={`/docs/guides/${tool.id}#notes`}>a tunnel</a>.
        </Notice>
      )}
      {models.data?.length === 0 && machine.may("editor") && (
        <Notice kind="warn">
          No account is connected yet. <a href={to(machine.id, "providers", "add")}>Add an account</a> first.
        </Notice>
      )}
      <Section title="Models">
        <div class="grid">
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
        {model && !isDefault && machine.may("editor") && (
          <Button busy={save.busy} changes="/settings" onClick={() => void saveDefaults()}>
            Save as default models
          </Button>
        )}
      </Section>
      {tool.script && !models.data && !models.error && <Skeleton what="models" rows={1} />}
      {tool.script && (models.data || models.error) && (
        <Command
          key={`${tool.id} ${model} ${small}`}
          machine={machine}
          tool={tool}
          model={model}
          small={small}
          call={call}
        />
      )}
      {tool.script ? (
        <details>
          <summary>Manual setup</summary>
          {manual}
        </details>
      ) : (
        manual
      )}
      <LastCall machine={machine} tool={tool} onConnected={setCall} />
    </>
  );
}

// Manual shows the settings of a tool, with a new key if the user creates one.
function Manual({
  machine,
  list,
  tool,
  model,
  small,
}: {
  machine: Machine;
  list: ToolList;
  tool: ToolRow;
  model: string;
  small: string;
}) {
  const [apiKey, setKey] = useState("");
  const create = useAction();
  return (
    <Section title="Settings">
      <div class="stack">
        {apiKey ? (
          <Notice kind="warn">The settings contain a new key. Copy them now: you won’t see it again.</Notice>
        ) : (
          <div class="row wrap">
            <p>
              Replace <code>{noKey}</code> with an API key of this machine.
            </p>
            <Button
              busy={create.busy}
              onClick={() =>
                void create.run(async () => {
                  const k = await machine.post<KeyRow>("/keys", { name: tool.name });
                  setKey(k.apiKey ?? "");
                })
              }
            >
              Create a key
            </Button>
          </div>
        )}
        {create.error && <ErrorBox>{create.error}</ErrorBox>}
        <ToolTexts
          list={list}
          tool={tool}
          apiKey={apiKey || noKey}
          model={model || "provider/model"}
          small={small || "provider/model"}
        />
      </div>
    </Section>
  );
}
