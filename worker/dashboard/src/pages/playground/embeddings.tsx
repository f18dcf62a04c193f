import { number } from "../../format";
import { Section, Table } from "../../layout";
import { Button, ErrorBox, Field } from "../../ui";
import { Details, ModelField, type TryProps, useInput, useModel, useTry } from "./call";

const maxLines = 12;

// cosine returns the cosine similarity of two vectors, from -1 to 1; 0 for a zero
// vector.
function cosine(a: number[], b: number[]): number {
  let dot = 0,
    aa = 0,
    bb = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? dot / Math.sqrt(aa * bb) : 0;
}

// Embeddings compares lines of text by their embeddings.
export function Embeddings({ machine, models }: TryProps) {
  const [model, setModel] = useModel({ machine, models }, "embeddings");
  const [text, setText] = useInput(
    machine,
    "embeddings text",
    "The cat sits on the mat.\nA kitten rests on a rug.\nInterest rates rose again.",
  );
  const t = useTry(machine, "/v1/embeddings", async (res) => {
    const { data } = (await res.json()) as { data: { index: number; embedding: number[] }[] };
    return data.sort((a, b) => a.index - b.index).map((d) => d.embedding);
  });
  const [compared, setCompared] = useInput<string[]>(machine, "embeddings compared", []);
  const lines = text
    .split("\n")
    .map((l) => l.trim())
    .filter(Boolean)
    .slice(0, maxLines);
  const run = (e: Event) => {
    e.preventDefault();
    setCompared(lines);
    void t.run({ model, input: lines });
  };
  return (
    <>
      <Section title="Embeddings">
        <form onSubmit={run}>
          <ModelField models={models} value={model} onPick={setModel} />
          <Field label="Texts" hint={`One per line, up to ${maxLines}.`}>
            <textarea class="prose" dir="auto" rows={5} value={text} onInput={(e) => setText(e.currentTarget.value)} />
          </Field>
          {t.act.error && <ErrorBox>{t.act.error}</ErrorBox>}
          <Button kind="main" type="submit" busy={t.act.busy} disabled={lines.length === 0}>
            Compare
          </Button>
        </form>
      </Section>
      {t.result && (
        <Section
          title="Similarity"
          intro={`Cosine similarity (1 = identical). ${number(t.result[0]?.length ?? 0)} dimensions.`}
        >
          <Table label="Similarity of the texts">
            <thead>
              <tr>
                <th>Text</th>
                {compared.map((l, i) => (
                  <th key={i} class="num">
                    <abbr title={l}>{i + 1}</abbr>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {t.result.map((v, i) => (
                <tr key={i} class="heat">
                  <th scope="row">
                    {i + 1}. {compared[i]}
                  </th>
                  {t.result?.map((w, j) => {
                    const s = cosine(v, w);
                    return (
                      <td key={j} class="num" style={{ "--heat": `${Math.round(Math.max(0, s) * 45)}%` }}>
                        {s.toFixed(2)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </Table>
        </Section>
      )}
      {t.sent && <Details machine={machine} sent={t.sent} />}
    </>
  );
}
