import { useMemo, useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { Combo, ModelRow } from "../../api-types";
import { useLoad } from "../../hooks";
import { segmentOf } from "../../kinds";
import { ListHead } from "../../forms";
import { MoreRows } from "../../layout";
import { Badge, Button, ErrorBox } from "../../ui";

const maxShown = 60; // models of the list
const maxMembers = 16;

// dragType is the type of a model that is dragged from the list.
export const dragType = "application/x-weir-model";

// Candidates lists the models and combos that can be added to a combo, by button
// or by dragging them onto the members.
export function Candidates({
  machine,
  kind,
  others,
  members,
  onAdd,
}: {
  machine: Machine;
  kind: string;
  others: Combo[];
  members: string[];
  onAdd: (id: string) => void;
}) {
  const segment = segmentOf(kind);
  const list = useLoad(() => machine.list<ModelRow>(`/models/list/${segment}`), [machine, segment]);
  const [search, setSearch] = useState("");
  const all = useMemo(
    () => [
      ...others.map((o) => ({ id: o.name, combo: true })),
      ...(list.data ?? [])
        .filter((m) => m.owned_by !== "combo" && (segment !== "web" || !m.kind || m.kind === kind))
        .map((m) => ({ id: m.id, combo: false })),
    ],
    [list.data, others, kind],
  );
  const query = search.trim().toLowerCase();
  const shown = all.filter((m) => m.id.toLowerCase().includes(query));
  return (
    <div class="stack">
      <h3>Add models</h3>
      <ListHead
        what="model"
        text={search}
        shown={shown.length}
        all={list.data ? all.length : undefined}
        onInput={setSearch}
      />
      {list.error && <ErrorBox retry={list.reload}>{list.error}</ErrorBox>}
      <ul class="pick" aria-label="Models and combos" tabIndex={0}>
        {shown.slice(0, maxShown).map((m) => {
          const isMember = members.includes(m.id),
            label = isMember ? "Added" : "Add";
          return (
            <li
              key={m.id + m.combo}
              class="row between"
              draggable
              onDragStart={(e) => e.dataTransfer?.setData(dragType, m.id)}
            >
              <span>
                <code>{m.id}</code> {m.combo && <Badge kind="accent">Combo</Badge>}
              </span>
              <Button
                kind={isMember ? "quiet" : undefined}
                icon={isMember ? "check" : "plus"}
                aria-label={`${label} ${m.id}`}
                disabled={!isMember && members.length >= maxMembers}
                onClick={() => onAdd(m.id)}
              >
                {label}
              </Button>
            </li>
          );
        })}
      </ul>
      {!list.loading && shown.length === 0 && (
        <p class="muted">
          {query
            ? "No models found."
            : "No models of this kind. Add an account that has some, or add them on the page Models."}
        </p>
      )}
      <MoreRows n={shown.length - maxShown} />
    </div>
  );
}
