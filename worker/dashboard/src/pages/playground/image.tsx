import { Section } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";
import { Details, ModelField, type TryProps, useInput, useModel, useTry } from "./call";

// images are the types of images, by the start of their base64.
const images: [start: string, type: string][] = [
  ["iVBOR", "image/png"],
  ["/9j/", "image/jpeg"],
  ["UklGR", "image/webp"],
  ["R0lGOD", "image/gif"],
];

// Image generates an image from a text. It requests base64, because the page shows
// no images of other origins; OpenAI's GPT image models return base64 only and
// reject the field that requests it.
export function Image({ machine, models }: TryProps) {
  const [model, setModel] = useModel({ machine, models }, "image");
  const [prompt, setPrompt] = useInput(machine, "image prompt", "A weir in a quiet river, woodcut"),
    [size, setSize] = useInput(machine, "image size", "");
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
                placeholder="Default, or e.g. 1024x1024"
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
            Generate image
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
                  Open the image at the provider
                </a>
              ) : (
                <ErrorBox>The answer contains no image that the browser can show.</ErrorBox>
              )}
              {d.revised_prompt && <figcaption class="muted small">{d.revised_prompt}</figcaption>}
            </figure>
          );
        })}
      </Section>
      {t.sent && <Details machine={machine} sent={t.sent} />}
    </>
  );
}
