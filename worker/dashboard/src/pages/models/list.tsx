import type { Machine } from "../../api";
import type { ModelRow } from "../../api-types";
import { number, rate } from "../../format";
import { type Loaded, useAction } from "../../hooks";
import { to, useFilter } from "../../route";
import { toast } from "../../toast";
import { ListHead } from "../../forms";
import { Load, MoreRows, Table } from "../../layout";
import { Button, Empty, ErrorBox } from "../../ui";

const maxShown = 300;

// columns are the figures of a list; one is omitted if no model has it.
const columns: [name: string, of: (m: ModelRow) => string][] = [
  ["Context", (m) => (m.context_length ? number(m.context_length) : "")],
  ["Max output", (m) => (m.max_completion_tokens ? number(m.max_completion_tokens) : "")],
  ["Dimensions", (m) => (m.dimensions ? number(m.dimensions) : "")],
  ["Input price", (m) => rate(m.pricing?.input)],
  ["Output price", (m) => rate(m.pricing?.output)],
];

// ModelList lists the models of a kind.
export function ModelList({
  machine,
  list,
  onOpen,
  onChange,
}: {
  machine: Machine;
  list: Loaded<ModelRow[]>;
  onOpen: (m: ModelRow) => void;
  onChange: () => Promise<void>;
}) {
  const [search, setSearch] = useFilter("q", "");
  const hide = useAction();
  const disable = (m: ModelRow) =>
    hide.run(async () => {
      await machine.post("/models/disabled", { providerAlias: m.owned_by, ids: [m.id.slice(m.owned_by.length + 1)] });
      toast(`Disabled ${m.id}.`);
      await onChange();
    });
  return (
    <Load of={list} what="models" rows={6}>
      {(data) => {
        if (data.length === 0) {
          return (
            <Empty title="No models of this kind">
              <p>Add a provider that has some.</p>
              <a class="button" href={to(machine.id, "providers", "add")}>
                Add provider
              </a>
            </Empty>
          );
        }
        const query = search.trim().toLowerCase();
        const shown = data.filter((m) => m.id.toLowerCase().includes(query));
        const figures = columns.filter(([, of]) => data.some((m) => of(m))),
          abilities = data.some((m) => m.capabilities);
        return (
          <>
            <ListHead what="model" text={search} shown={shown.length} all={data.length} onInput={setSearch} />
            {hide.error && <ErrorBox>{hide.error}</ErrorBox>}
            {shown.length === 0 ? (
              <Empty title="No models found" />
            ) : (
              <Table label="Models">
                <thead>
                  <tr>
                    <th scope="col">Model</th>
                    <th scope="col" class="desk">
                      Provider
                    </th>
                    {figures.map(([name]) => (
                      <th key={name} scope="col" class="num desk">
                        {name}
                      </th>
                    ))}
                    {abilities && (
                      <th scope="col" class="desk">
                        Capabilities
                      </th>
                    )}
                    <th scope="col">
                      <span class="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {shown.slice(0, maxShown).map((m) => (
                    <tr key={m.id}>
                      <th scope="row">
                        <Button kind="link" onClick={() => onOpen(m)}>
                          {m.id}
                        </Button>
                      </th>
                      <td class="desk">{m.owned_by}</td>
                      {figures.map(([name, of]) => (
                        <td key={name} class="num desk">
                          {of(m) || "–"}
                        </td>
                      ))}
                      {abilities && (
                        <td class="desk can">
                          <small class="muted">
                            {Object.entries(m.capabilities ?? {})
                              .filter(([, v]) => v)
                              .map(([k]) => k.replaceAll("_", " "))
                              .join(" · ")}
                          </small>
                        </td>
                      )}
                      <td class="num">
                        {m.id.startsWith(`${m.owned_by}/`) && (
                          <Button
                            kind="quiet"
                            disabled={hide.busy}
                            aria-label={`Disable ${m.id}`}
                            onClick={() => void disable(m)}
                          >
                            Disable
                          </Button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </Table>
            )}
            {figures.some(([name]) => name.endsWith("price")) && (
              <p class="muted small desk">Prices are in US dollars per million tokens.</p>
            )}
            <MoreRows n={shown.length - maxShown} />
          </>
        );
      }}
    </Load>
  );
}
