import { useEffect, useState } from "preact/hooks";
import { family } from "../../connections";
import { count } from "../../format";
import { useAction } from "../../hooks";
import { Section } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";
import { Details, ModelField, type TryProps, useInput, useModel, useTry } from "./call";
import { useVoices } from "./voices";

// sounds are the file extensions of sound types: the answer may have another type
// than the requested one.
const sounds: [type: RegExp, end: string][] = [
  [/mpeg|mp3/, "mp3"],
  [/wav/, "wav"],
  [/ogg|opus/, "ogg"],
  [/aac/, "aac"],
  [/flac/, "flac"],
];
const ending = (type: string) => sounds.find(([known]) => known.test(type))?.[1];

// Speech turns a text into speech, which plays from this page's memory.
export function Speech({ machine, models, connections }: TryProps) {
  const [model, setModel] = useModel({ machine, models }, "speech");
  const [typed, setVoice] = useInput<string | null>(machine, "speech typed", null),
    [format, setFormat] = useInput(machine, "speech format", "mp3"),
    [text, setText] = useInput(machine, "speech text", "Hello from weir.");
  const [seconds, setSeconds] = useState(NaN);
  const t = useTry(machine, "/v1/audio/speech", async (res) => {
    setSeconds(NaN);
    return res.blob();
  });
  const prefix = model.split("/")[0],
    known = models.some((m) => m.startsWith(`${prefix}/`)) || connections.some((c) => c.provider === prefix);
  const provider = connections.find((c) => c.providerSpecificData.prefix === prefix)?.provider ?? (known ? prefix : "");
  const { voices, load } = useVoices(machine, provider, model);
  const listing = useAction();
  // Compatible servers know OpenAI's voices; other providers use their first one.
  const voice = typed ?? (family(provider) ? "alloy" : (voices[0]?.id ?? ""));
  const [url, setUrl] = useState("");
  useEffect(() => {
    if (!t.result) return;
    const made = URL.createObjectURL(t.result);
    setUrl(made);
    return () => {
      setUrl("");
      URL.revokeObjectURL(made);
    };
  }, [t.result]);
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
              hint={voices.length > 0 ? `${count(voices.length, "voice")} available.` : listing.error || undefined}
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
              Generate speech
            </Button>
            {provider && !family(provider) && voices.length === 0 && (
              <Button busy={listing.busy} onClick={() => void listing.run(load)}>
                List voices
              </Button>
            )}
          </div>
        </form>
        {t.result && url && (
          <div class="stack">
            <audio
              controls
              src={url}
              aria-label="Generated speech"
              onDurationChange={(e) => setSeconds(e.currentTarget.duration)}
            />
            <p class="muted small">
              {Number.isFinite(seconds) && `${seconds.toFixed(1)} s, `}
              {Math.ceil(t.result.size / 1024)} kB, {t.result.type || "unknown type"} ·{" "}
              <a href={url} download={`speech.${ending(t.result.type) ?? format}`}>
                Download
              </a>
            </p>
          </div>
        )}
      </Section>
      {t.sent && <Details machine={machine} sent={t.sent} />}
    </>
  );
}
