import { useState } from "preact/hooks";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { families } from "../../connections";
import { count } from "../../format";
import { useLoad } from "../../hooks";
import { kindNames } from "../../kinds";
import type { PageProps } from "../../page";
import { to, useFilter } from "../../route";
import { Search, Tabs } from "../../forms";
import { Load, Page } from "../../layout";
import { Badge, Empty } from "../../ui";
import { AddConnection, type Addable } from "./add";
import { last } from "./priorities";

// servers are programs that users may search for. They are compatible providers.
const servers = "Ollama, vLLM, LM Studio, LiteLLM, any compatible server";

// Gallery shows the table of providers to choose from.
export function Gallery({ machine }: PageProps) {
  const list = useLoad(() => machine.list<ProviderRow>("/catalog/providers"), [machine]);
  const conns = useLoad(() => machine.list<ConnectionRow>("/providers"), [machine]);
  const [search, setSearch] = useFilter("q", ""),
    [kind, setKind] = useFilter("kind", "");
  const [adding, setAdding] = useState<Addable | null>(null);
  const query = search.trim().toLowerCase();
  const fits = (p: ProviderRow) =>
    (!kind || p.kinds.includes(kind)) && `${p.name} ${p.id} ${p.alias}`.toLowerCase().includes(query);
  const isConnected = (id: string) => conns.data?.some((c) => c.provider === id);
  const tile = (a: Addable, name: string, about: string, tag: string, connected = false) => (
    <li key={name}>
      <button type="button" class="tile" onClick={() => setAdding(a)}>
        <span class="monogram" aria-hidden="true" style={{ "--hue": hue(name) }}>
          {name.replace(/[^\p{L}\p{N}]/gu, "").slice(0, 2)}
        </span>
        <span class="about">
          <strong>
            <span class="hidden">Add </span>
            {name}
          </strong>{" "}
          {connected && <Badge kind="good">Connected</Badge>}
          <small>{about}</small> {tag && <small>{tag}</small>}
        </span>
      </button>
    </li>
  );
  return (
    <Page
      title="Add provider"
      intro="Choose a provider, or connect any server that is compatible with OpenAI or Anthropic."
      actions={
        <a class="button" href={to(machine.id, "providers")}>
          Back to providers
        </a>
      }
    >
      <div class="stack">
        <Search label="Search providers" value={search} onInput={setSearch} />
        <Tabs label="Kind" value={kind} onPick={setKind} items={[["", "All"], ...Object.entries(kindNames)]} />
      </div>
      <Load of={list} what="providers" rows={5}>
        {(data) => {
          const shown = data.filter(fits),
            byAddress = !!query && servers.toLowerCase().includes(query);
          return (
            <>
              <p class="muted small" role="status">
                {shown.length} of {count(data.length, "provider")}
                {byAddress && ". Connect your own server as a compatible provider."}
              </p>
              <ul class="tiles">
                {families.map(([id, name]) => tile(id, name, servers, ""))}
                {shown.map((p) =>
                  tile(
                    p,
                    p.name,
                    `${p.alias}/`,
                    [
                      ...(p.connect.length ? ["Sign-in"] : p.keyFree ? ["No key needed"] : []),
                      ...p.kinds.map((k) => kindNames[k] ?? k),
                    ].join(" · "),
                    isConnected(p.id),
                  ),
                )}
              </ul>
              {shown.length === 0 && !byAddress && (
                <Empty title="No providers found">
                  <p>If it is compatible with OpenAI or Anthropic, connect it as a compatible provider.</p>
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

// hue returns the hue of a name's monogram, in degrees.
function hue(name: string): number {
  let h = 7;
  for (const c of name) h = (h * 31 + c.codePointAt(0)!) % 360;
  return h;
}
