import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { CaptureList, SettingValues } from "../../api-types";
import { Ask } from "../../dialog";
import { useDraft } from "../../draft";
import { bytes, count, duration } from "../../format";
import { Restored } from "../../forms";
import { useAction, useLoad } from "../../hooks";
import { Failed, Load, Section } from "../../layout";
import { toast } from "../../toast";
import { Button, ErrorBox } from "../../ui";
import { Setting } from "./setting";

type Values = Pick<SettingValues, "capturePercent" | "captureHours">;

// spans are the choices of how long bodies are stored, in hours.
const spans = [1, 6, 24, 72, 168];

const hourMs = 3_600_000;

// Captures turns the storage of request and answer bodies on and off, and deletes them.
export function Captures({ machine }: { machine: Machine }) {
  const loaded = useLoad(() => machine.tagged<SettingValues>("GET", "/settings"), [machine]);
  const stored = useLoad(() => machine.get<CaptureList>("/captures"), [machine]);
  const [typed, setTyped, draft] = useDraft<Partial<Values>>(`captures ${machine.id}`, {});
  const save = useAction();
  const v = loaded.data && { ...loaded.data.value, ...typed };
  const submit = (e: Event) => {
    e.preventDefault();
    void save.run(async () => {
      loaded.set(await machine.tagged<SettingValues>("PATCH", "/settings", typed, loaded.data!.tag));
      draft.clear();
      toast("Settings saved.");
    });
  };
  return (
    <Section
      title="Stored prompts"
      intro={
        <>
          Store prompts and answers for debugging, encrypted and with credentials masked. Off by default.{" "}
          <a href="/docs/guides/captured-bodies" target="_blank" rel="noreferrer">
            Learn more
          </a>
        </>
      }
    >
      <Load of={loaded} what="settings" rows={1}>
        {() =>
          v && (
            <form class="grid" onSubmit={submit}>
              <Restored draft={draft} />
              <Setting label="Share of requests (%)" hint="0 turns it off. A key can have its own share.">
                <input
                  type="number"
                  required
                  min={0}
                  max={100}
                  value={v.capturePercent}
                  onInput={(e) => setTyped({ ...typed, capturePercent: e.currentTarget.valueAsNumber })}
                />
              </Setting>
              <Setting label="Keep for">
                <select
                  value={String(v.captureHours)}
                  onChange={(e) => setTyped({ ...typed, captureHours: Number(e.currentTarget.value) })}
                >
                  {[...new Set([...spans, v.captureHours])]
                    .sort((a, b) => a - b)
                    .map((h) => (
                      <option key={h} value={String(h)}>
                        {duration(h * hourMs)}
                      </option>
                    ))}
                </select>
              </Setting>
              {save.error && (
                <div class="full">
                  <Failed of={save} reload={loaded.reload} />
                </div>
              )}
              <div class="full">
                <Button type="submit" kind="main" busy={save.busy} changes="/settings" disabled={!draft.dirty}>
                  Save
                </Button>
              </div>
            </form>
          )
        }
      </Load>
      <Load of={stored} what="stored prompts and answers" rows={1}>
        {(list) => <Stored machine={machine} list={list} reload={stored.reload} />}
      </Load>
    </Section>
  );
}

// Stored says what is stored, and deletes it.
function Stored({ machine, list, reload }: { machine: Machine; list: CaptureList; reload: () => Promise<void> }) {
  const [asking, setAsking] = useState(false);
  const remove = useAction();
  if (list.data.length === 0) return <p class="muted">No prompts or answers are stored.</p>;
  const what = `the prompts and answers of ${count(list.data.length, "request")}`;
  if (asking)
    return (
      <Ask
        text={`Delete ${what}?`}
        action="Delete"
        onBack={() => setAsking(false)}
        onConfirm={() => {
          setAsking(false);
          void remove.run(async () => {
            await machine.del("/captures");
            toast("Stored prompts and answers deleted.");
            await reload();
          });
        }}
      />
    );
  return (
    <div class="row wrap">
      <span>
        {count(list.data.length, "request")} stored, {bytes(list.bytes)} of {bytes(list.maxBytes)}
      </span>
      <Button kind="danger" busy={remove.busy} onClick={() => setAsking(true)}>
        Delete all
      </Button>
      {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
    </div>
  );
}
