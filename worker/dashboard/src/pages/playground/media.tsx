import { useEffect, useMemo, useState } from "preact/hooks";
import { useAction } from "../../hooks";
import { Button, Empty, ErrorBox, Field, Section, count } from "../../ui";
import { family } from "../../connections";
import { Details, ModelField, type Sent, type TryProps } from "../playground";
import { ask, refusal } from "../../client";

// useTry sends a call and keeps what came of it.
function useTry<T>(machine: TryProps["machine"], path: string, read: (res: Response) => Promise<T>) {
  const [sent, setSent] = useState<Sent | null>(null),
    [result, setResult] = useState<T | null>(null);
  const act = useAction();
  // A function may make another call first.
  const run = (of: unknown) =>
    act.run(async () => {
      setSent(null);
      setResult(null);
      const body: unknown = typeof of === "function" ? await of() : of;
      const began = performance.now();
      const res = await ask(machine, path, body);
      setSent({ path, body, res, ms: Math.round(performance.now() - began) });
      if (!res.ok) throw await refusal(res);
      setResult(await read(res));
    });
  return { sent, result, act, run };
}

interface Voice {
  id: string;
  name: string;
  lang: string;
  gender: string;
  model: string;
}

// useVoices returns the voices of a model, none if its provider has no list. They
// are fetched with the machine's key, so not before load is called.
function useVoices(
  machine: TryProps["machine"],
  provider: string,
  model: string,
): { voices: Voice[]; load: () => Promise<Voice[]> } {
  const [list, set] = useState<{ of: string; voices: Voice[] } | null>(null);
  // Some providers have a model for each voice, which has only that voice.
  const fit = (all: Voice[]) =>
    all.filter((v) => !v.model.endsWith(`/${v.id}/${v.id}`) || v.model === `${model}/${v.id}`);
  const voices = useMemo(() => fit(list?.of === provider ? list.voices : []), [list, provider, model]);
  const load = async () => {
    if (!provider || family(provider)) return [];
    if (list?.of === provider) return voices;
    const res = await ask(machine, `/v1/audio/voices?provider=${encodeURIComponent(provider)}`);
    const all = res.ok ? ((await res.json()) as { data: Voice[] }).data : [];
    set({ of: provider, voices: all });
    return fit(all);
  };
  return { voices, load };
}

// Speech makes sound of a text; it plays from this page's memory.
export function Speech({ machine, models, connections }: TryProps) {
  const [model, setModel] = useState(models[0]),
    [typed, setVoice] = useState<string | null>(null),
    [format, setFormat] = useState("mp3"),
    [text, setText] = useState("Hello from weir.");
  const [seconds, setSeconds] = useState(NaN);
  const t = useTry(machine, "/v1/audio/speech", async (res) => {
    setSeconds(NaN);
    const blob = await res.blob();
    return { url: URL.createObjectURL(blob), size: blob.size, type: blob.type };
  });
  const prefix = model.split("/")[0],
    known = models.some((m) => m.startsWith(prefix + "/")) || connections.some((c) => c.provider === prefix);
  const provider = connections.find((c) => c.providerSpecificData.prefix === prefix)?.provider ?? (known ? prefix : "");
  const { voices, load } = useVoices(machine, provider, model);
  const listing = useAction();
  // Servers of OpenAI's format know its voices; of others the first one will do.
  const voice = typed ?? (family(provider) ? "alloy" : (voices[0]?.id ?? ""));
  const url = t.result?.url;
  useEffect(
    () => () => {
      if (url) URL.revokeObjectURL(url);
    },
    [url],
  );
  return (
    <>
      <Section title="Speech">
        <form
          onSubmit={(e) => {
            e.preventDefault();
            void t.run(async () => {
              const with_ = voice || (await load())[0]?.id;
              return { model, input: text, ...(with_ ? { voice: with_ } : {}), response_format: format };
            });
          }}
        >
          <div class="grid">
            <ModelField models={models} value={model} onPick={setModel} />
            <Field
              label="Voice"
              hint={
                voices.length > 0 ? `The provider has ${count(voices.length, "voice")}.` : listing.error || undefined
              }
            >
              <input
                list="try-voices"
                spellcheck={false}
                autocapitalize="none"
                value={voice}
                onInput={(e) => setVoice(e.currentTarget.value)}
              />
            </Field>
            <datalist id="try-voices">
              {voices.slice(0, 800).map((v) => (
                <option key={v.id} value={v.id}>
                  {[v.name !== v.id && v.name, v.lang, v.gender].filter(Boolean).join(", ")}
                </option>
              ))}
            </datalist>
            <Field label="Format">
              <select value={format} onChange={(e) => setFormat(e.currentTarget.value)}>
                {["mp3", "opus", "aac", "flac", "wav"].map((f) => (
                  <option key={f}>{f}</option>
                ))}
              </select>
            </Field>
          </div>
          <Field label="Text">
            <textarea
              class="prose"
              dir="auto"
              rows={3}
              required
              value={text}
              onInput={(e) => setText(e.currentTarget.value)}
            />
          </Field>
          {t.act.error && <ErrorBox>{t.act.error}</ErrorBox>}
          <div class="row">
            <Button kind="main" type="submit" busy={t.act.busy}>
              Speak
            </Button>
            {provider && !family(provider) && voices.length === 0 && (
              <Button busy={listing.busy} onClick={() => void listing.run(load)}>
                List voices
              </Button>
            )}
          </div>
        </form>
        {t.result && (
          <div class="stack">
            <audio
              controls
              src={t.result.url}
              aria-label="The speech"
              onDurationChange={(e) => setSeconds(e.currentTarget.duration)}
            />
            <p class="muted small">
              {Number.isFinite(seconds) && `${seconds.toFixed(1)} s, `}
              {Math.ceil(t.result.size / 1024)} kB, {t.result.type || "no type"} ·{" "}
              <a href={t.result.url} download={`speech.${ending(t.result.type) ?? format}`}>
                Save it
              </a>
            </p>
          </div>
        )}
      </Section>
      {t.sent && <Details sent={t.sent} />}
    </>
  );
}

// Kinds of sound and how their files end: a provider may give another than asked for.
const sounds: [type: RegExp, end: string][] = [
  [/mpeg|mp3/, "mp3"],
  [/wav/, "wav"],
  [/ogg|opus/, "ogg"],
  [/aac/, "aac"],
  [/flac/, "flac"],
];
const ending = (type: string) => sounds.find(([known]) => known.test(type))?.[1];

// Kinds of images by how their base64 begins.
const images: [start: string, type: string][] = [
  ["iVBOR", "image/png"],
  ["/9j/", "image/jpeg"],
  ["UklGR", "image/webp"],
  ["R0lGOD", "image/gif"],
];

// Image makes an image of a text. It is asked for in base64, as the page shows
// none of another origin; OpenAI’s GPT image models give nothing else, and
// refuse to be asked.
export function Image({ machine, models }: TryProps) {
  const [model, setModel] = useState(models[0]),
    [prompt, setPrompt] = useState("A weir in a quiet river, woodcut"),
    [size, setSize] = useState("");
  const t = useTry(machine, "/v1/images/generations", async (res) => {
    const { data } = (await res.json()) as { data: { b64_json?: string; url?: string; revised_prompt?: string }[] };
    return data;
  });
  return (
    <>
      <Section title="Image">
        <form
          onSubmit={(e) => {
            e.preventDefault();
            void t.run({
              model,
              prompt,
              n: 1,
              ...(/gpt-image/.test(model) ? {} : { response_format: "b64_json" }),
              ...(size ? { size } : {}),
            });
          }}
        >
          <div class="grid">
            <ModelField models={models} value={model} onPick={setModel} />
            <Field label="Size">
              <input
                placeholder="the model’s own, or 1024x1024"
                pattern="\d+x\d+|auto"
                value={size}
                onInput={(e) => setSize(e.currentTarget.value)}
              />
            </Field>
          </div>
          <Field label="Prompt">
            <textarea
              class="prose"
              dir="auto"
              rows={3}
              required
              value={prompt}
              onInput={(e) => setPrompt(e.currentTarget.value)}
            />
          </Field>
          {t.act.error && <ErrorBox>{t.act.error}</ErrorBox>}
          <Button kind="main" type="submit" busy={t.act.busy}>
            Make an image
          </Button>
        </form>
        {t.result?.map((d, i) => {
          const type = images.find(([start]) => d.b64_json?.startsWith(start))?.[1];
          return (
            <figure key={i} class="stack">
              {type && d.b64_json ? (
                <img class="made" src={`data:${type};base64,${d.b64_json}`} alt={d.revised_prompt ?? prompt} />
              ) : d.url && /^https?:/i.test(d.url) ? (
                <a href={d.url} target="_blank" rel="noopener noreferrer">
                  Open the image at its provider
                </a>
              ) : (
                <ErrorBox>The answer holds no image that a browser can show.</ErrorBox>
              )}
              {d.revised_prompt && <figcaption class="muted small">{d.revised_prompt}</figcaption>}
            </figure>
          );
        })}
      </Section>
      {t.sent && <Details sent={t.sent} />}
    </>
  );
}

interface Found {
  title?: string;
  url?: string;
  snippet?: string;
  published_at?: string;
}

export function Search({ machine, models }: TryProps) {
  const [model, setModel] = useState(models[0]),
    [query, setQuery] = useState("");
  const t = useTry(machine, "/v1/search", async (res) => ((await res.json()) as { results?: Found[] }).results ?? []);
  return (
    <>
      <Section title="Search">
        <form
          onSubmit={(e) => {
            e.preventDefault();
            void t.run({ model, query, max_results: 5 });
          }}
        >
          <div class="grid">
            <ModelField models={models} value={model} onPick={setModel} />
            <Field label="Query">
              <input required value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
            </Field>
          </div>
          {t.act.error && <ErrorBox>{t.act.error}</ErrorBox>}
          <Button kind="main" type="submit" busy={t.act.busy}>
            Search
          </Button>
        </form>
        {t.result?.length === 0 && <Empty title="Nothing was found" />}
        {t.result && t.result.length > 0 && (
          <ol class="plain" aria-label="Results">
            {t.result.map((r, i) => (
              <li key={i}>
                {/^https?:\/\//i.test(r.url ?? "") ? (
                  <a href={r.url} target="_blank" rel="noopener noreferrer">
                    {r.title || r.url}
                  </a>
                ) : (
                  <strong>{r.title}</strong>
                )}
                <div class="muted small">{r.url}</div>
                <p class="small">{r.snippet}</p>
              </li>
            ))}
          </ol>
        )}
      </Section>
      {t.sent && <Details sent={t.sent} />}
    </>
  );
}
