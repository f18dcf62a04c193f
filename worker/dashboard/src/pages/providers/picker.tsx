import { useEffect, useState } from "preact/hooks";
import type { Machine } from "../../api";
import { useAction, useLoad } from "../../hooks";
import { toast } from "../../toast";
import { Badge, Button, Empty, Failed, Load, Search, Section, count } from "../../ui";
import { kindNames, type ConnectionRow } from "../../connections";

interface Listed {
  data: { id: string; kind?: string; context_length?: number }[];
  source: string;
}

const sources: Record<string, string> = {
  upstream: "As the provider lists them now.",
  last: "The provider does not answer; this is its last good list.",
  catalog: "From the built-in catalogue: the provider has no list, or does not answer.",
};

const mostShown = 400;

// ModelPicker ticks the models that a connection offers (enabledModels). None
// ticked by hand means all, also those that the provider adds later.
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
  const [picked, setPicked] = useState<Set<string> | null>(null);
  const save = useAction();
  useEffect(() => {
    setPicked(enabled ? new Set(enabled) : null);
  }, [c.generation]);
  const store = (models: string[] | null) =>
    save.run(async () => {
      const next = await machine.put<ConnectionRow>(
        `/providers/${c.id}`,
        { providerSpecificData: { enabledModels: models } },
        c.generation,
      );
      toast(models ? `Saved: ${count(models.length, "model")}.` : "All models are enabled.");
      onChange(next);
    });
  return (
    <Section title="Models" intro="Which of its models clients may see and call.">
      <Load of={list} what="the provider’s models">
        {({ data, source }) => {
          const listed = new Set(data.map((m) => m.id));
          const all: Listed["data"] = [...data, ...(enabled ?? []).filter((m) => !listed.has(m)).map((id) => ({ id }))];
          if (all.length === 0)
            return (
              <Empty title="No models known">
                <p>
                  The provider gave no list. Check the credential and the address with the test, or add custom models.
                </p>
              </Empty>
            );
          const ticked = (id: string) => picked === null || picked.has(id);
          const wanted = search.trim().toLowerCase();
          const shown = all.filter((m) => m.id.toLowerCase().includes(wanted));
          const tick = (ids: string[], on: boolean) => {
            const next = new Set(picked ?? all.map((m) => m.id));
            for (const id of ids)
              if (on) next.add(id);
              else next.delete(id);
            setPicked(next);
          };
          const chosen = all.filter((m) => ticked(m.id)).length;
          return (
            <>
              <p class="muted small">
                {sources[source] ?? ""}{" "}
                <span role="status">
                  {picked === null ? `All ${all.length} are enabled.` : `${chosen} of ${all.length} are ticked.`}
                </span>
              </p>
              <div class="row wrap">
                <Search label="Search these models" value={search} onInput={setSearch} />
                <Button
                  kind="quiet"
                  onClick={() =>
                    tick(
                      shown.map((m) => m.id),
                      true,
                    )
                  }
                >
                  Tick {wanted ? "these" : "all"}
                </Button>
                <Button
                  kind="quiet"
                  onClick={() =>
                    tick(
                      shown.map((m) => m.id),
                      false,
                    )
                  }
                >
                  Untick {wanted ? "these" : "all"}
                </Button>
              </div>
              <fieldset class="ticks">
                <legend class="hidden">Enabled models</legend>
                {shown.slice(0, mostShown).map((m) => (
                  <label key={m.id}>
                    <input
                      type="checkbox"
                      checked={ticked(m.id)}
                      onChange={(e) => tick([m.id], e.currentTarget.checked)}
                    />
                    <code>{m.id}</code>
                    {m.kind && <Badge>{kindNames[m.kind] ?? m.kind}</Badge>}
                  </label>
                ))}
              </fieldset>
              {shown.length > mostShown && <p class="muted">{shown.length - mostShown} more: search to see them.</p>}
              {shown.length === 0 && <p class="muted">No model matches.</p>}
              <Failed of={save} reload={onReload} />
              <div class="row wrap">
                <Button
                  kind="main"
                  busy={save.busy}
                  disabled={picked === null || chosen === 0}
                  onClick={() => void store(all.map((m) => m.id).filter(ticked))}
                >
                  Save the ticked ones
                </Button>
                <Button
                  disabled={save.busy || (picked === null && !enabled)}
                  onClick={() => {
                    setPicked(null);
                    void store(null);
                  }}
                >
                  Enable all, also future ones
                </Button>
              </div>
            </>
          );
        }}
      </Load>
    </Section>
  );
}
