import { useState } from "preact/hooks";
import type { PageProps } from "../../app";
import { useLoad } from "../../hooks";
import { to, useFilter } from "../../route";
import { Badge, Empty, Load, Page, Search, Tabs, count } from "../../ui";
import { AddConnection, type Addable } from "./add";
import { families, kindNames, last, type ConnectionRow, type ProviderRow } from "../../connections";

// servers are names that users may search for, connected by their own address.
const servers = "Ollama, vLLM, LM Studio, LiteLLM, any compatible server";

// Gallery shows the provider table, to pick one to connect.
export function Gallery({ machine }: PageProps) {
  const list = useLoad(() => machine.get<{ data: ProviderRow[] }>("/catalog/providers"), [machine]);
  const conns = useLoad(async () => (await machine.get<{ data: ConnectionRow[] }>("/providers")).data, [machine]);
  const [search, setSearch] = useFilter("q", ""),
    [kind, setKind] = useFilter("kind", "");
  const [adding, setAdding] = useState<Addable | null>(null);
  const wanted = search.trim().toLowerCase();
  const fits = (p: ProviderRow) =>
    (!kind || p.kinds.includes(kind)) && `${p.name} ${p.id} ${p.alias}`.toLowerCase().includes(wanted);
  const has = (id: string) => conns.data?.some((c) => c.provider === id);
  const tile = (a: Addable, name: string, about: string, tag: string, connected = false) => (
    <li key={name}>
      <button type="button" class="tile" onClick={() => setAdding(a)}>
        <span class="monogram" aria-hidden="true" style={{ "--hue": hue(name) }}>
          {name.replace(/[^\p{L}\p{N}]/gu, "").slice(0, 2)}
        </span>
        <span class="words">
          <strong>
            <span class="hidden">Add </span>
            {name}
          </strong>{" "}
          {connected && <Badge kind="good">connected</Badge>}
          <small>{about}</small> {tag && <small>{tag}</small>}
        </span>
      </button>
    </li>
  );
  return (
    <Page
      title="Add a provider"
      intro="Pick one, or connect any server that speaks OpenAI’s or Anthropic’s format."
      actions={
        <a class="button" href={to(machine.id, "providers")}>
          Back to the providers
        </a>
      }
    >
      <div class="stack">
        <Search label="Search providers" value={search} onInput={setSearch} />
        <Tabs label="Kind" value={kind} onPick={setKind} items={[["", "Every kind"], ...Object.entries(kindNames)]} />
      </div>
      <Load of={list} what="the providers" rows={5}>
        {({ data }) => {
          const shown = data.filter(fits),
            byAddress = !!wanted && servers.toLowerCase().includes(wanted);
          return (
            <>
              <p class="muted small" role="status">
                {shown.length} of {count(data.length, "provider")}
                {byAddress && "; connect your own server by its address"}
              </p>
              <ul class="tiles">
                {families.map(([id, name]) => tile(id, name, servers, ""))}
                {shown.map((p) =>
                  tile(
                    p,
                    p.name,
                    `${p.alias}/`,
                    [
                      ...(p.connect.length ? ["sign in"] : p.keyFree ? ["no key needed"] : []),
                      ...p.kinds.map((k) => kindNames[k] ?? k),
                    ].join(" · "),
                    has(p.id),
                  ),
                )}
              </ul>
              {shown.length === 0 && !byAddress && (
                <Empty title="No provider matches">
                  <p>If it speaks OpenAI’s or Anthropic’s format, connect it as a compatible one.</p>
                </Empty>
              )}
            </>
          );
        }}
      </Load>
      {adding && (
        <AddConnection
          machine={machine}
          of={adding}
          priority={conns.data ? last(conns.data) : undefined}
          onClose={() => {
            setAdding(null);
            void conns.reload();
          }}
        />
      )}
    </Page>
  );
}

// hue gives each name a colour of its own.
function hue(name: string): number {
  let h = 7;
  for (const c of name) h = (h * 31 + c.codePointAt(0)!) % 360;
  return h;
}
