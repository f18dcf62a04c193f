import "./list.css";
import type { Machine } from "../../api";
import type { ModelRow } from "../../api-types";
import { Choice, ListHead } from "../../forms";
import { count } from "../../format";
import { type Loaded, useAction } from "../../hooks";
import { ActionsHead, Load, Table } from "../../layout";
import { to, useFilter } from "../../route";
import { Middle } from "../../middle";
import { Button, Cut, Empty, ErrorBox, Field } from "../../ui";
import { VirtualBody } from "../../virtual";
import { CopyId, canDisable, disable, TryLink } from "./actions";
import { type Column, columns, listed, otherPrice } from "./sort";

const groups: [string, string][] = [
  ["", "None"],
  ["provider", "Provider"],
];

const deprecation = ({ date, successor }: NonNullable<ModelRow["deprecated"]>) =>
  [date && `Ends ${date}`, successor && `use ${successor}`].filter(Boolean).join(", ") || "Deprecated by its provider";

// ModelList lists the models of a kind.
export function ModelList({
  machine,
  list,
  segments,
  segment,
  callable,
  onSegment,
  onOpen,
  onChange,
}: {
  machine: Machine;
  list: Omit<Loaded<ModelRow[]>, "set">;
  segments: [segment: string, name: string][];
  segment: string;
  callable: boolean;
  onSegment: (segment: string) => void;
  onOpen: (m: ModelRow) => void;
  onChange: () => Promise<void>;
}) {
  const [search, setSearch] = useFilter("q", ""),
    [sort, setSort] = useFilter("sort", ""),
    [group, setGroup] = useFilter("group", "", ["", "provider"]);
  const hide = useAction();
  const data = list.data ?? [];
  const query = search.trim().toLowerCase();
  const found = data.filter((m) => m.id.toLowerCase().includes(query));
  const grouped = group === "provider";
  const rows = listed(found, sort, grouped);
  const used = columns.filter((c) => data.some((m) => c.text(m)));
  const other = data.some((m) => otherPrice(m)),
    abilities = data.some((m) => m.capabilities);
  const width = used.length + 2 + Number(!grouped) + Number(other) + Number(abilities);
  const row = (key: string, m: ModelRow, index: number) => {
    const facts = used.map((c) => c.text(m) && `${c.name} ${c.text(m)}`).filter(Boolean);
    return (
      <tr key={key} aria-rowindex={index + 2}>
        <th scope="row" class="fill">
          <div class="row tight">
            <Button kind="link" onClick={() => onOpen(m)}>
              <Middle>{m.id}</Middle>
            </Button>
            {m.deprecated && (
              <small class="muted" title={deprecation(m.deprecated)}>
                deprecated
              </small>
            )}
          </div>
          <small class="phone muted">{[...facts, otherPrice(m)].filter(Boolean).join(" · ")}</small>
        </th>
        {!grouped && (
          <td class="desk spare fill owner">
            <Cut>{m.owned_by}</Cut>
          </td>
        )}
        {used.map((c) => (
          <td key={c.key} class="num desk">
            {c.text(m) || "–"}
          </td>
        ))}
        {other && <td class="desk">{otherPrice(m) || "–"}</td>}
        {abilities && (
          <td class="desk spare fill">
            <small class="muted">
              <Cut>
                {Object.entries(m.capabilities ?? {})
                  .filter(([, v]) => v)
                  .map(([k]) => k.replaceAll("_", " "))
                  .join(" · ")}
              </Cut>
            </small>
          </td>
        )}
        <td>
          <div class="actions">
            {canDisable(m) && (
              <span class="desk">
                <Button
                  kind="quiet"
                  changes="/models/disabled"
                  disabled={hide.busy}
                  aria-label={`Disable ${m.id}`}
                  onClick={() => void hide.run(() => disable(machine, m, onChange))}
                >
                  Disable
                </Button>
              </span>
            )}
            <CopyId id={m.id} />
            {callable && <TryLink machine={machine} m={m} segment={segment} />}
          </div>
        </td>
      </tr>
    );
  };
  return (
    <div class={data.length > 0 && used.length === 0 ? "stack few" : "stack"}>
      <ListHead what="model" text={search} shown={found.length} all={list.data?.length} onInput={setSearch}>
        <Choice label="Kind" value={segment} options={segments} onPick={onSegment} />
        <Choice label="Group by" value={group} options={groups} onPick={setGroup} />
        <div class="narrow phone">
          <Field label="Sort by">
            <select value={sort} onChange={(e) => setSort(e.currentTarget.value)}>
              <option value="">Default</option>
              {[{ key: "id", name: "Model" }, ...used].flatMap(({ key, name }) => [
                <option key={key} value={key}>{`${name}, ascending`}</option>,
                <option key={`-${key}`} value={`-${key}`}>{`${name}, descending`}</option>,
              ])}
            </select>
          </Field>
        </div>
      </ListHead>
      <Load of={list} what="models" rows={6}>
        {() =>
          data.length === 0 ? (
            <Empty title="No models of this kind">
              <p>Add an account that has some, or add under Custom the models that your server does not list.</p>
              <a class="button" href={to(machine.id, "providers", "add")}>
                Add account
              </a>
            </Empty>
          ) : (
            <>
              {hide.error && <ErrorBox>{hide.error}</ErrorBox>}
              {rows.length === 0 ? (
                <Empty title="No models found" />
              ) : (
                <Table label="Models" list rowCount={rows.length + 1}>
                  <thead>
                    <tr>
                      <SortHead column={{ key: "id", name: "Model" }} sort={sort} onSort={setSort} />
                      {!grouped && (
                        <th scope="col" class="desk spare">
                          Provider
                        </th>
                      )}
                      {used.map((c) => (
                        <SortHead key={c.key} column={c} sort={sort} onSort={setSort} figure />
                      ))}
                      {other && (
                        <th scope="col" class="desk">
                          Price
                        </th>
                      )}
                      {abilities && (
                        <th scope="col" class="desk spare">
                          Capabilities
                        </th>
                      )}
                      <ActionsHead />
                    </tr>
                  </thead>
                  <VirtualBody rows={rows} columns={width} keyOf={(r) => r.key}>
                    {(r, i) =>
                      r.m ? (
                        row(r.key, r.m, i)
                      ) : (
                        <tr key={r.key} class="group" aria-rowindex={i + 2}>
                          <th scope="rowgroup" colSpan={width}>
                            {r.group} <span class="muted">{count(r.n!, "model")}</span>
                          </th>
                        </tr>
                      )
                    }
                  </VirtualBody>
                </Table>
              )}
              {used.some((c) => c.money) && (
                <p class="muted small">USD per 1M tokens. Custom prices override the catalogue.</p>
              )}
            </>
          )
        }
      </Load>
    </div>
  );
}

// SortHead is the head of a column that sorts: ascending, descending, then in the
// provider's order again.
function SortHead({
  column: { key, name },
  sort,
  onSort,
  figure,
}: {
  column: Pick<Column, "key" | "name">;
  sort: string;
  onSort: (sort: string) => void;
  figure?: boolean;
}) {
  const up = sort === key,
    down = sort === `-${key}`;
  return (
    <th scope="col" class={figure ? "num desk" : ""} aria-sort={up ? "ascending" : down ? "descending" : undefined}>
      <button type="button" class="sort" onClick={() => onSort(up ? `-${key}` : down ? "" : key)}>
        {name}
        <span aria-hidden="true">{up ? " ↑" : down ? " ↓" : ""}</span>
      </button>
    </th>
  );
}
