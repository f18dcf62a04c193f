// Records that depend on a name: they change when a combo, an alias or a custom model
// is deleted.
import { useState } from "preact/hooks";
import type { Machine } from "./api";
import type { Budget, Combo, KeyRow, SettingValues } from "./api-types";
import { Confirm } from "./confirm";
import type { Action } from "./hooks";
import { keyName } from "./names";
import { Notice } from "./ui";

export interface Uses {
  combos: string[];
  keys: string[];
  budgets: string[];
  settings: number;
}

// usesOf returns what names a model, a combo or an alias.
export async function usesOf(machine: Machine, name: string): Promise<Uses> {
  const [combos, keys, budgets, settings] = await Promise.all([
    machine.list<Combo>("/combos"),
    machine.list<KeyRow>("/keys"),
    machine.list<Budget>("/budgets"),
    machine.get<SettingValues>("/settings"),
  ]);
  return {
    combos: combos.filter((c) => c.name !== name && c.models.includes(name)).map((c) => c.name),
    keys: keys.filter((k) => k.models?.includes(name)).map(keyName),
    budgets: budgets.filter((b) => b.models?.includes(name)).map((b) => b.name),
    settings: Object.values(settings).filter((value) => value === name).length,
  };
}

export const isUsed = (u: Uses) => u.combos.length + u.keys.length + u.budgets.length + u.settings > 0;

// UsedBy lists what depends on a name.
export function UsedBy({ uses }: { uses: Uses }) {
  if (!isUsed(uses)) return null;
  const lists: [what: string, names: string[]][] = [
    ["Combos", uses.combos],
    ["Keys limited to it", uses.keys],
    ["Budgets", uses.budgets],
  ];
  return (
    <Notice kind="warn">
      It is used by:
      <ul>
        {lists.map(
          ([what, names]) =>
            names.length > 0 && (
              <li key={what}>
                {what}: <strong>{names.join(", ")}</strong>
              </li>
            ),
        )}
        {uses.settings > 0 && <li>The settings of Claude models</li>}
      </ul>
    </Notice>
  );
}

// useDeletion returns a function that deletes a named record: at once, or once the user
// confirms it in the dialog, which lists what depends on the name.
export function useDeletion(machine: Machine, act: Action) {
  const [asked, ask] = useState<{ name: string; uses: Uses; remove: () => Promise<unknown> } | null>(null);
  const start = (name: string, remove: () => Promise<unknown>) =>
    void act.run(async () => {
      const uses = await usesOf(machine, name);
      if (isUsed(uses)) ask({ name, uses, remove });
      else await remove();
    });
  const confirm = async () => {
    if (await act.run(asked!.remove)) ask(null);
  };
  const dialog = asked && (
    <Confirm
      title={`Delete ${asked.name}?`}
      action="Delete"
      of={act}
      onDo={() => void confirm()}
      onClose={() => ask(null)}
    >
      <UsedBy uses={asked.uses} />
    </Confirm>
  );
  return { start, dialog };
}
