import { useState } from "preact/hooks";
import { useAction } from "../../hooks";
import { Button, ErrorBox, Field, Section, Table } from "../../ui";
import { Details, ModelField, type Sent, type TryProps } from "../playground";
import { ask, refusal } from "../../client";

const path = "/v1/embeddings";
const maxLines = 12;

// cosine gives the similarity of two vectors, from -1 to 1; 0 where one is nothing.
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

// Embeddings compares lines of text by their vectors.
export function Embeddings({ machine, models }: TryProps) {
  const [model, setModel] = useState(models[0]);
  const [text, setText] = useState("The cat sits on the mat.\nA kitten rests on a rug.\nInterest rates rose again.");
  const [sent, setSent] = useState<Sent | null>(null),
    [result, setResult] = useState<{ lines: string[]; vectors: number[][] } | null>(null);
  const act = useAction();
  const lines = text
    .split("\n")
    .map((l) => l.trim())
    .filter(Boolean)
    .slice(0, maxLines);
  const run = (e: Event) => {
    e.preventDefault();
    const body = { model, input: lines };
    void act.run(async () => {
      setSent(null);
      const began = performance.now();
      const res = await ask(machine, path, body);
      setSent({ path, body, res, ms: Math.round(performance.now() - began) });
      if (!res.ok) throw await refusal(res);
      const { data } = (await res.json()) as { data: { index: number; embedding: number[] }[] };
      setResult({ lines, vectors: data.sort((a, b) => a.index - b.index).map((d) => d.embedding) });
    });
  };
  return (
    <>
      <Section title="Embeddings">
        <form onSubmit={run}>
          <ModelField models={models} value={model} onPick={setModel} />
          <Field label="Texts" hint={`One a line, ${maxLines} at most.`}>
            <textarea class="prose" dir="auto" rows={5} value={text} onInput={(e) => setText(e.currentTarget.value)} />
          </Field>
          {act.error && <ErrorBox>{act.error}</ErrorBox>}
          <Button kind="main" type="submit" busy={act.busy} disabled={lines.length === 0}>
            Compare
          </Button>
        </form>
      </Section>
      {result && (
        <Section
          title="Similarity"
          intro={`Of every two texts, 1 is the same direction. ${result.vectors[0]?.length ?? 0} dimensions.`}
        >
          <Table label="Similarity of the texts">
            <thead>
              <tr>
                <th>Text</th>
                {result.lines.map((l, i) => (
                  <th key={i} class="num">
                    <abbr title={l}>{i + 1}</abbr>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {result.vectors.map((v, i) => (
                <tr key={i} class="heat">
                  <th scope="row">
                    {i + 1}. {result.lines[i]}
                  </th>
                  {result.vectors.map((w, j) => {
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
      {sent && <Details sent={sent} />}
    </>
  );
}
