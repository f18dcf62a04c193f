import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { SettingValues } from "../../api-types";
import { useDraft } from "../../draft";
import { useAction, useLoad } from "../../hooks";
import { toast } from "../../toast";
import { Restored } from "../../forms";
import { Failed, Load, Section } from "../../layout";
import { Button } from "../../ui";
import { Setting } from "./setting";

// families are the families of Claude models, with the settings of their models.
const families = [
  ["Opus", "claudeOpusModel"],
  ["Sonnet", "claudeSonnetModel"],
  ["Haiku", "claudeHaikuModel"],
  ["Fable", "claudeFableModel"],
] as const;

// timeouts are the settings of seconds, with their labels.
const timeouts = [
  ["First-byte timeout (seconds)", "firstByteSeconds"],
  ["Stream idle timeout (seconds)", "idleSeconds"],
] as const;

// words returns the words of a list with commas.
const words = (list: string) =>
  list
    .split(",")
    .map((w) => w.trim())
    .filter((w) => w !== "");

// same reports whether two values of a setting are equal. A list that is missing is empty.
const same = (a: unknown, b: unknown) =>
  a === b || (Array.isArray(a) && String(a) === String(Array.isArray(b) ? b : ""));

// Routing is the form of the settings that apply to every request.
export function Routing({ machine }: { machine: Machine }) {
  const loaded = useLoad(() => machine.tagged<SettingValues>("GET", "/settings"), [machine]);
  const [typed, setTyped, draft] = useDraft<Partial<SettingValues>>(`settings ${machine.id}`, {});
  const models = useLoad(() => machine.modelIds("llm"), [machine]);
  const save = useAction();
  const [tags, setTags] = useState<string>(); // as typed, with commas at the end
  const v = loaded.data && { ...loaded.data.value, ...typed };
  // put changes the input, which holds only the values that differ from the stored ones.
  const put = (part: Partial<SettingValues>) =>
    setTyped((was) =>
      Object.fromEntries(
        Object.entries({ ...was, ...part }).filter(([k, x]) => !same(x, loaded.data!.value[k as keyof SettingValues])),
      ),
    );
  const submit = (e: Event) => {
    e.preventDefault();
    void save.run(async () => {
      // Only changed values are sent, because a default may differ by endpoint.
      loaded.set(await machine.tagged<SettingValues>("PATCH", "/settings", typed, loaded.data!.tag));
      draft.clear();
      setTags(undefined);
      toast("Settings saved.");
    });
  };
  const fields = tags ?? v?.tagsFrom?.join(", ") ?? "";
  return (
    <Section
      title="Routing and timeouts"
      intro="How accounts are selected, and how long a provider may take to answer."
    >
      <Load of={loaded} what="settings" rows={2}>
        {() =>
          v && (
            <form class="grid wide" onSubmit={submit}>
              <Restored draft={draft} />
              <Setting label="Account strategy" hint="How to pick between accounts with the same priority.">
                <select value={v.strategy} onChange={(e) => put({ strategy: e.currentTarget.value })}>
                  <option value="affinity">Sticky sessions (best for caching)</option>
                  <option value="priority">In order</option>
                  <option value="round-robin">Round-robin</option>
                  <option value="weighted">Weighted</option>
                  <option value="fastest">Fastest</option>
                  <option value="least-busy">Least busy</option>
                </select>
              </Setting>
              <Setting label="Default embedding input type" hint="Used when the client doesn’t set one.">
                <select
                  value={v.embeddingInputType}
                  onChange={(e) => put({ embeddingInputType: e.currentTarget.value })}
                >
                  <option value="document">Document</option>
                  <option value="query">Query</option>
                </select>
              </Setting>
              <Setting label="Responses over WebSocket" hint="Turn off to make Codex use HTTP.">
                <select
                  value={v.responsesWebSocket}
                  onChange={(e) => put({ responsesWebSocket: e.currentTarget.value })}
                >
                  <option value="on">On</option>
                  <option value="off">Off</option>
                </select>
              </Setting>
              <Setting
                label="Prompt caching"
                hint="Adds Claude cache markers for clients that don’t. Auto: only for conversations and tools."
              >
                <select value={v.promptCaching} onChange={(e) => put({ promptCaching: e.currentTarget.value })}>
                  <option value="auto">Auto</option>
                  <option value="off">Off</option>
                  <option value="on">On</option>
                </select>
              </Setting>
              <Setting label="Append cost to streams" hint="Adds the cost as a comment at the end of a stream.">
                <select value={v.streamCost} onChange={(e) => put({ streamCost: e.currentTarget.value })}>
                  <option value="off">Off</option>
                  <option value="on">On</option>
                </select>
              </Setting>
              <Setting label="Log client networks" hint="Stores which networks each key is used from.">
                <select value={v.keyNetworks} onChange={(e) => put({ keyNetworks: e.currentTarget.value })}>
                  <option value="on">On</option>
                  <option value="off">Off</option>
                </select>
              </Setting>
              <div class="pair">
                {timeouts.map(([label, name]) => (
                  <Setting key={name} label={label}>
                    <input
                      type="number"
                      required
                      min="1"
                      max="3600"
                      value={v[name]}
                      onInput={(e) => put({ [name]: e.currentTarget.valueAsNumber })}
                    />
                  </Setting>
                ))}
              </div>
              <div class="pair">
                <Setting label="Concurrent requests" hint="Across all keys. 0 means no limit.">
                  <input
                    type="number"
                    required
                    min="0"
                    max="1000000"
                    value={v.maxParallel}
                    onInput={(e) => put({ maxParallel: e.currentTarget.valueAsNumber })}
                  />
                </Setting>
                <Setting label="Time zone" hint="Used for budget resets, e.g. Europe/Berlin.">
                  <input
                    autocapitalize="none"
                    spellcheck={false}
                    placeholder="UTC"
                    value={v.timeZone}
                    onInput={(e) => put({ timeZone: e.currentTarget.value })}
                  />
                </Setting>
              </div>
              <Setting
                label="Tags from request fields"
                hint="user, safety_identifier or metadata.NAME, separated by commas. Their values can identify people."
              >
                <input
                  autocapitalize="none"
                  spellcheck={false}
                  placeholder="None"
                  value={fields}
                  onInput={(e) => {
                    setTags(e.currentTarget.value);
                    put({ tagsFrom: words(e.currentTarget.value) });
                  }}
                />
              </Setting>
              <details class="full" open={families.some(([, name]) => loaded.data!.value[name])}>
                <summary>Models for Claude Code</summary>
                <div class="grid wide">
                  {families.map(([family, name]) => (
                    <Setting key={name} label={`Model for Claude ${family}`}>
                      <input
                        list="claude-models"
                        autocapitalize="none"
                        spellcheck={false}
                        placeholder="Anthropic (default)"
                        value={v[name] ?? ""}
                        onInput={(e) => put({ [name]: e.currentTarget.value })}
                      />
                    </Setting>
                  ))}
                </div>
              </details>
              <datalist id="claude-models">
                {models.data?.slice(0, 500).map((m) => (
                  <option key={m} value={m} />
                ))}
              </datalist>
              {save.error && (
                <div class="full">
                  <Failed of={save} reload={loaded.reload} />
                </div>
              )}
              <div class="full">
                <Button type="submit" kind="main" busy={save.busy} changes="/settings">
                  Save
                </Button>
              </div>
            </form>
          )
        }
      </Load>
    </Section>
  );
}
