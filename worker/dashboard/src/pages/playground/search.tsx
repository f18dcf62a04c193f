import { Section } from "../../layout";
import { Button, Empty, ErrorBox, Field } from "../../ui";
import { Details, ModelField, type TryProps, useInput, useModel, useTry } from "./call";

interface SearchResult {
  title?: string;
  url?: string;
  snippet?: string;
  published_at?: string;
}

// Search searches the web.
export function Search({ machine, models }: TryProps) {
  const [model, setModel] = useModel({ machine, models }, "search");
  const [query, setQuery] = useInput(machine, "search query", "");
  const t = useTry(
    machine,
    "/v1/search",
    async (res) => ((await res.json()) as { results?: SearchResult[] }).results ?? [],
  );
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
        {t.result?.length === 0 && <Empty title="No results" />}
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
      {t.sent && <Details machine={machine} sent={t.sent} />}
    </>
  );
}
