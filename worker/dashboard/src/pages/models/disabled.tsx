import type { Machine } from "../../api";
import { type Loaded, useAction } from "../../hooks";
import { toast } from "../../toast";
import { Load, Section } from "../../layout";
import { Button, Cut, ErrorBox } from "../../ui";
import { VirtualList } from "../../virtual";

// Disabled lists the disabled models.
export function Disabled({
  machine,
  off,
  onChange,
}: {
  machine: Machine;
  off: Loaded<Record<string, string[]>>;
  onChange: () => Promise<void>;
}) {
  const act = useAction();
  const enable = (alias: string, id: string) =>
    act.run(async () => {
      await machine.del(`/models/disabled?providerAlias=${encodeURIComponent(alias)}&id=${encodeURIComponent(id)}`);
      toast(`Enabled ${alias}/${id}.`);
      await onChange();
    });
  return (
    <Section title="Disabled models" intro="Hidden from your clients. Requests to them are refused.">
      <Load of={off} what="disabled models" rows={1}>
        {(all) => {
          const rows = Object.entries(all).flatMap(([alias, ids]) => ids.map((id) => [alias, id] as const));
          if (rows.length === 0) return <p class="muted">No models are disabled.</p>;
          return (
            <VirtualList rows={rows} keyOf={([alias, id]) => `${alias}/${id}`}>
              {([alias, id]) => (
                <>
                  <code>
                    <Cut>{`${alias}/${id}`}</Cut>
                  </code>
                  <Button
                    changes="/models/disabled"
                    disabled={act.busy}
                    aria-label={`Enable ${alias}/${id}`}
                    onClick={() => void enable(alias, id)}
                  >
                    Enable
                  </Button>
                </>
              )}
            </VirtualList>
          );
        }}
      </Load>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </Section>
  );
}
