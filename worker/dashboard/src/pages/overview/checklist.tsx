import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Machine, playgroundKeyName } from "../../api";
import type { ConnectionRow, KeyRow, ProviderRow } from "../../api-types";
import { useAction } from "../../hooks";
import { Icon } from "../../icons";
import { Section } from "../../layout";
import { remember, remembered } from "../../remembered";
import { to } from "../../route";
import { Button } from "../../ui";
import { PasteKey } from "./paste";

// popularTools are those whose command the checklist copies.
const popularTools: [id: string, name: string][] = [
  ["claude-code", "Claude Code"],
  ["codex", "Codex CLI"],
  ["opencode", "OpenCode"],
  ["gemini-cli", "Gemini CLI"],
];

// Progress states which steps are done: an account, a tool, a call.
export type Progress = [account: boolean, tool: boolean, call: boolean];

// usable are the accounts that can be called.
const usable = (conns: ConnectionRow[]) => conns.filter((c) => c.isActive && !c.status.startsWith("needs_"));

// progressOf returns the progress of a machine. An account is connected once it has answered a
// call or its test, a tool once a key other than those of the playground and weir call has been used.
export function progressOf(conns: ConnectionRow[], of: { keys: KeyRow[]; answered: boolean }): Progress {
  const own: (string | undefined)[] = [playgroundKeyName, "weir call"];
  const keys = of.keys.filter((k) => k.scopes.includes("data") && !own.includes(k.name));
  return [usable(conns).some((c) => c.lastSuccessAt || of.answered), keys.some((k) => !!k.lastUsedAt), of.answered];
}

// useHidden is whether the user has hidden the checklist of a machine.
export function useHidden(machine: Machine): [hidden: boolean, hide: () => void] {
  const name = `weir-checklist-${machine.id}`;
  const [hidden, set] = useState(() => remembered(name) === "hidden");
  const hide = () => {
    set(true);
    remember(name, "hidden"); // otherwise it is hidden until the page is closed
  };
  return [hidden, hide];
}

// Checklist leads to the first call. Its steps are ticked by what the machine has.
export function Checklist({
  machine,
  progress,
  conns,
  catalog,
  onAccount,
  onTool,
  onHide,
}: {
  machine: Machine;
  progress: Progress;
  conns: ConnectionRow[];
  catalog: ProviderRow[];
  onAccount: (model?: string) => Promise<void>;
  onTool: (id: string) => void;
  onHide: () => void;
}) {
  const [account, tool, call] = progress;
  const adding = useAction();
  const hasAccount = usable(conns).length > 0;
  const steps: [title: string, done: boolean, what: ComponentChildren][] = [
    [
      "Connect an account",
      account && !adding.busy,
      <>
        {hasAccount && !adding.busy && (
          <p class="muted">
            No account has answered yet. <a href={to(machine.id, "providers")}>Test your accounts</a>
          </p>
        )}
        {machine.may("editor") && catalog.length > 0 && (
          <PasteKey machine={machine} catalog={catalog} adding={adding} onChange={onAccount} />
        )}
        <a class="small" href={to(machine.id, "providers", "add")}>
          All providers, your own servers
        </a>
      </>,
    ],
    [
      "Connect a tool",
      tool,
      <>
        <p class="muted">Choose a tool. Its command is copied: it creates a key and writes the tool’s settings.</p>
        {popularTools.map(([id, name]) => (
          <Button key={id} icon="copy" onClick={() => onTool(id)}>
            {name}
          </Button>
        ))}
        <a class="small" href={to(machine.id, "connect")}>
          All tools
        </a>
      </>,
    ],
    [
      "Send the first request",
      call,
      <>
        <p class="muted">Send a prompt with your tool, or try a model here.</p>
        <a class="button" href={to(machine.id, "playground")}>
          Open the playground
        </a>
      </>,
    ],
  ];
  const current = steps.findIndex(([, done]) => !done);
  return (
    <Section
      title="Get started"
      actions={
        <Button kind="quiet" onClick={onHide}>
          Hide
        </Button>
      }
    >
      <ol class="steps checklist">
        {steps.map(([title, done, what], i) => (
          <li key={title} aria-current={i === current ? "step" : undefined}>
            <span class={done ? "place done" : "place"} aria-hidden="true">
              {done ? <Icon name="check" size={16} /> : i + 1}
            </span>
            <div class="stack">
              <h3>
                {title}
                <span class="hidden">{done ? ": done" : ": not done"}</span>
              </h3>
              {!done && (i === 0 || hasAccount) && <div class="row wrap tight">{what}</div>}
            </div>
          </li>
        ))}
      </ol>
    </Section>
  );
}
