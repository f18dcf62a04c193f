import { useEffect, useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { ConnectionRow, List } from "../../api-types";
import { count } from "../../format";
import { useAction, useLoad } from "../../hooks";
import { kindNames } from "../../kinds";
import { toast } from "../../toast";
import { Search } from "../../forms";
import { Failed, Load, MoreRows, Section } from "../../layout";
import { Badge, Button, Empty } from "../../ui";
import "./picker.css";

interface Listed extends List<{ id: string; kind?: string }> {
  /** upstream, last (its last valid list) or catalog */
  source: string;
}

const sources: Record<string, string> = {
  upstream: "Live from the provider.",
  last: "Provider unreachable; showing the last list.",
  catalog: "Built-in list (the provider didn’t return one).",
};

const maxShown = 400;

// ModelPicker selects the models that a connection offers (enabledModels). Without
// a selection it offers all, also those that the provider adds later.
export function ModelPicker({
  machine,
  c,
  onChange,
  onReload,
}: {
  machine: Machine;
  c: ConnectionRow;
  onChange: (c: ConnectionRow) => void;
  onReload: () => Promise<void>;
}) {
  const list = useLoad(() => machine.get<Listed>(`/providers/${c.id}/models`), [machine, c.id, c.generation]);
  const enabled = c.providerSpecificData.enabledModels;
  const [search, setSearch] = useState("");
  const [selected, setSelected] = useState<Set<string> | null>(null);
  const save = useAction();
  useEffect(() => {
    setSelected(enabled ? new Set(enabled) : null);
  }, [c.generation]);
  const store = (models: string[] | null) =>
    save.run(async () => {
      const next = await machine.put<ConnectionRow>(
        `/providers/${c.id}`,
        { providerSpecificData: { enabledModels: models } },
        c.generation,
      );
      toast(models ? `Saved ${count(models.length, "model")}.` : "All models are allowed.");
      onChange(next);
    });
  return (
    <Section title="Models" intro="The models of this account that clients can see and call.">
      <Load of={list} what="models">
        {({ data, source }) => {
          const listed = new Set(data.map((m) => m.id));
          const all: Listed["data"] = [...data, ...(enabled ?? []).filter((m) => !listed.has(m)).map((id) => ({ id }))];
          if (all.length === 0)
            return (
              <Empty title="No models found">
                <p>
                  No model list received. Test the account to check its credentials and base URL, or add custom models.
                </p>
              </Empty>
            );
          const isSelected = (id: string) => selected === null || selected.has(id);
          const query = search.trim().toLowerCase();
          const shown = all.filter((m) => m.id.toLowerCase().includes(query));
          const select = (ids: string[], on: boolean) => {
            const next = new Set(selected ?? all.map((m) => m.id));
            for (const id of ids)
              if (on) next.add(id);
              else next.delete(id);
            setSelected(next);
          };
          const chosen = all.filter((m) => isSelected(m.id)).length;
          return (
            <>
              <p class="muted small">
                {sources[source] ?? ""}{" "}
                <span role="status">
                  {selected === null ? `All ${all.length} allowed.` : `${chosen} of ${all.length} selected.`}
                </span>
              </p>
              <div class="row wrap">
                <Search label="Search models" value={search} onInput={setSearch} />
                <Button
                  kind="quiet"
                  onClick={() =>
                    select(
                      shown.map((m) => m.id),
                      true,
                    )
                  }
                >
                  Select {query ? "these" : "all"}
                </Button>
                <Button
                  kind="quiet"
                  onClick={() =>
                    select(
                      shown.map((m) => m.id),
                      false,
                    )
                  }
                >
                  Clear {query ? "these" : "all"}
                </Button>
              </div>
              <fieldset class="ticks">
                <legend class="hidden">Allowed models</legend>
                {shown.slice(0, maxShown).map((m) => (
                  <label key={m.id}>
                    <input
                      type="checkbox"
                      checked={isSelected(m.id)}
                      onChange={(e) => select([m.id], e.currentTarget.checked)}
                    />
                    <code>{m.id}</code>
                    {m.kind && <Badge>{kindNames[m.kind] ?? m.kind}</Badge>}
                  </label>
                ))}
              </fieldset>
              <MoreRows n={shown.length - maxShown} />
              {shown.length === 0 && <p class="muted">No models found.</p>}
              <Failed of={save} reload={onReload} />
              <div class="row wrap">
                <Button
                  kind="main"
                  busy={save.busy}
                  changes={`/providers/${c.id}`}
                  disabled={selected === null || chosen === 0}
                  onClick={() => void store(all.map((m) => m.id).filter(isSelected))}
                >
                  Save selection
                </Button>
                <Button
                  changes={`/providers/${c.id}`}
                  disabled={save.busy || (selected === null && !enabled)}
                  onClick={() => {
                    setSelected(null);
                    void store(null);
                  }}
                >
                  Allow all, including new models
                </Button>
              </div>
            </>
          );
        }}
      </Load>
    </Section>
  );
}
