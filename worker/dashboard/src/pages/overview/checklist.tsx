import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Machine, playgroundKeyName } from "../../api";
import type { ConnectionRow, KeyRow, ProviderRow } from "../../api-types";
import { popular } from "../../connections";
import { Icon } from "../../icons";
import { Section } from "../../layout";
import { Monogram } from "../../monogram";
import { providerMarks } from "../providers/marks";
import { remember, remembered } from "../../remembered";
import { to } from "../../route";
import { Button } from "../../ui";

// popularTools are those that the checklist offers directly.
export const popularTools: [id: string, name: string][] = [
  ["claude-code", "Claude Code"],
  ["codex", "Codex CLI"],
  ["opencode", "OpenCode"],
  ["cursor", "Cursor"],
];

// Progress states which steps are done: an account, a key, a tool, a call.
export type Progress = [account: boolean, key: boolean, tool: boolean, call: boolean];

// progressOf returns the progress of a machine. A tool is connected once a key other
// than the playground's has been used.
export function progressOf(conns: ConnectionRow[], of: { keys: KeyRow[]; answered: boolean }): Progress {
  const keys = of.keys.filter((k) => k.scopes.includes("data") && k.name !== playgroundKeyName);
  return [
    conns.some((c) => c.isActive && !c.status.startsWith("needs_")),
    keys.length > 0,
    keys.some((k) => !!k.lastUsedAt),
    of.answered,
  ];
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

// toolLinks returns links to the pages of popular tools, and to all of them.
export const toolLinks = (machine: Machine) => (
  <>
    {popularTools.map(([id, name]) => (
      <a key={id} class="button" href={to(machine.id, "connect", id)}>
        {name}
      </a>
    ))}
    <a class="button quiet" href={to(machine.id, "connect")}>
      All tools
    </a>
  </>
);

// Checklist leads to the first call. Its steps are ticked by what the machine has.
export function Checklist({
  machine,
  progress,
  catalog,
  onAdd,
  onHide,
}: {
  machine: Machine;
  progress: Progress;
  catalog: ProviderRow[];
  onAdd: (p: ProviderRow) => void;
  onHide: () => void;
}) {
  const [account, key, tool, call] = progress;
  const marks = providerMarks(catalog);
  const steps: [title: string, done: boolean, what: ComponentChildren][] = [
    [
      "Connect an account",
      account,
      <>
        {popular.slice(0, 4).map((id) => {
          const p = catalog.find((row) => row.id === id);
          return (
            p && (
              <button type="button" key={id} onClick={() => onAdd(p)}>
                <Monogram of={marks.get(id)} />
                <span>
                  <span class="hidden">Connect </span>
                  {p.name}
                </span>
              </button>
            )
          );
        })}
        <a class="button quiet" href={to(machine.id, "providers", "add")}>
          All providers
        </a>
      </>,
    ],
    [
      "Create an API key",
      key,
      <a key="keys" class="button" href={to(machine.id, "keys")}>
        Create a key
      </a>,
    ],
    ["Connect a tool", tool, toolLinks(machine)],
    [
      "Make the first call",
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
              {!done && <div class="row wrap tight">{what}</div>}
            </div>
          </li>
        ))}
      </ol>
    </Section>
  );
}
