// The actions of a row of the list of models.
import type { Machine } from "../../api";
import type { ModelRow } from "../../api-types";
import { to } from "../../route";
import { toast } from "../../toast";
import { Button } from "../../ui";

// tries are the parts of the playground, by the kind of a model.
const tries: Record<string, string> = {
  llm: "chat",
  embedding: "embeddings",
  tts: "speech",
  image: "image",
  webSearch: "search",
};

// TryLink opens the playground with a model, if it has a part for the kind.
export function TryLink({ machine, m, segment }: { machine: Machine; m: ModelRow; segment: string }) {
  const part = tries[m.kind ?? segment];
  if (!part) return null;
  return (
    <a
      class="button quiet"
      aria-label={`Try ${m.id}`}
      href={`${to(machine.id, "playground", part)}?model=${encodeURIComponent(m.id)}`}
    >
      Try
    </a>
  );
}

// CopyId copies the id of a model.
export function CopyId({ id }: { id: string }) {
  const copy = () =>
    navigator.clipboard.writeText(id).then(
      () => toast(`Copied ${id}.`),
      () => toast("Copying failed. Select the text and copy it."),
    );
  return <Button kind="quiet" icon="copy" aria-label={`Copy ${id}`} onClick={() => void copy()} />;
}

// canDisable reports whether a model is one of a provider, and no combo.
export const canDisable = (m: ModelRow) => m.id.startsWith(`${m.owned_by}/`);

// disable hides a model from the machine's clients; it can be undone.
export async function disable(machine: Machine, m: ModelRow, onChange: () => Promise<void>) {
  const id = m.id.slice(m.owned_by.length + 1);
  await machine.post("/models/disabled", { providerAlias: m.owned_by, ids: [id] });
  toast(`Disabled ${m.id}.`, async () => {
    await machine.del(`/models/disabled?providerAlias=${encodeURIComponent(m.owned_by)}&id=${encodeURIComponent(id)}`);
    await onChange();
  });
  await onChange();
}
