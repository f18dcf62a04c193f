import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { CapturedBodies, CapturedBody, RequestRow } from "../../api-types";
import { Code } from "../../code";
import { bytes, indented } from "../../format";
import { useAction } from "../../hooks";
import { Time } from "../../time";
import { toast } from "../../toast";
import { Button, ErrorBox } from "../../ui";

// Bodies shows the captured bodies of a request, on demand: the gateway asks for a recent
// sign-in and records each view.
export function Bodies({ machine, r }: { machine: Machine; r: RequestRow }) {
  const [shown, setShown] = useState<CapturedBodies | null>(null),
    [deleted, setDeleted] = useState(false);
  const load = useAction(),
    remove = useAction();
  const path = `/captures/${encodeURIComponent(r.id)}`;
  if (!r.captured || !machine.may("owner")) return null;
  return (
    <section aria-label="Prompt and answer" class="stack">
      <h3>Prompt and answer</h3>
      {deleted ? (
        <p class="muted">The prompt and answer of this request were deleted.</p>
      ) : !shown ? (
        <>
          <p class="muted">Stored encrypted, with credentials masked. The audit log records each view.</p>
          <div class="row">
            <Button
              busy={load.busy}
              onClick={() => void load.run(async () => setShown(await machine.get<CapturedBodies>(path)))}
            >
              Show prompt and answer
            </Button>
          </div>
        </>
      ) : (
        <>
          <Body name="Request" of={shown.request} />
          <Body name="Answer" of={shown.answer} />
          <div class="row wrap">
            <Button
              kind="danger"
              busy={remove.busy}
              onClick={() =>
                void remove.run(async () => {
                  await machine.del(path);
                  setDeleted(true);
                  toast("Prompt and answer deleted.");
                })
              }
            >
              Delete prompt and answer
            </Button>
            <span class="muted">
              Stored until <Time at={shown.expiresAt} />
            </span>
          </div>
        </>
      )}
      {load.error && <ErrorBox>{load.error}</ErrorBox>}
      {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
    </section>
  );
}

function Body({ name, of }: { name: string; of: CapturedBody }) {
  const about = [of.contentType, of.bytes > 0 && bytes(of.bytes)].filter(Boolean).join(" · ");
  return (
    <div class="stack">
      <h4>{name}</h4>
      {about && <p class="small muted">{about}</p>}
      {of.omitted ? (
        <p class="muted">Not stored: this is not text.</p>
      ) : of.text === "" ? (
        <p class="muted">Empty.</p>
      ) : (
        <Code text={indented(of.text) || of.text} label={name} />
      )}
      {of.cut && (
        <p class="small">Truncated: only the first {bytes(new TextEncoder().encode(of.text).length)} are stored.</p>
      )}
    </div>
  );
}
