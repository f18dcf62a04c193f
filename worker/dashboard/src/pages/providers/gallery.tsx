import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ConnectionRow, ProviderRow } from "../../api-types";
import { now } from "../../clock";
import { families, popular } from "../../connections";
import { count } from "../../format";
import { useLoad } from "../../hooks";
import { kindNames } from "../../kinds";
import { Monogram } from "../../monogram";
import type { PageProps } from "../../page";
import { to, useFilter } from "../../route";
import { Search } from "../../forms";
import { Tabs } from "../../tabs";
import { Load, Page } from "../../layout";
import { Empty } from "../../ui";
import { AddConnection, type Addable } from "./add";
import { providerMarks } from "./marks";
import { statusOf } from "./health";
import { last } from "./priorities";
import { serverFits, servers } from "./servers";
import "../../tiles.css";

const own = "Your own server";

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
  // connected returns the state of the accounts of a provider: the first one's that does not work, if none does.
  const connected = (id: string) => {
    const states = (conns.data ?? []).filter((c) => c.provider === id).map((c) => statusOf(c, now()));
    const works = states.find(([kind]) => kind === "good" || kind === "");
    return works ? (["good", "Connected"] as const) : states[0];
  };
  const marks = providerMarks(list.data ?? []);
  const tile = (
    a: Addable,
    id: string,
    name: string,
    about: string,
    tag: string,
    state?: readonly [kind: string, text: string],
  ) => (
    <li key={id}>
      <button type="button" class="tile" onClick={() => setAdding(a)}>
        <Monogram letters={marks.get(id)} />
        <span class="about">
          <strong>
            <span class="hidden">Add </span>
            {name}
          </strong>{" "}
          <small>
            {about}
            {state && <span class={state[0]}> · {state[1]}</span>}
          </small>{" "}
          {tag && <small title={tag}>{tag}</small>}
        </span>
      </button>
    </li>
  );
  return (
    <Page
      title="Add account"
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
          const shown = data.filter(fits);
          const local =
            kind && kind !== "llm" && kind !== "embedding" ? [] : servers.filter((s) => serverFits(s, query));
          const rank = (p: ProviderRow) => popular.indexOf(p.id);
          const ofTable = (p: ProviderRow) =>
            tile(
              p,
              p.id,
              p.name,
              `${p.alias}/`,
              [
                ...(p.connect.length ? ["Sign-in"] : p.keyFree ? ["No key needed"] : []),
                ...p.kinds.map((k) => kindNames[k] ?? k),
              ].join(" · "),
              connected(p.id),
            );
          const groups: [title: string, tiles: JSX.Element[]][] = [
            [
              "Popular",
              shown
                .filter((p) => rank(p) >= 0)
                .toSorted((a, b) => rank(a) - rank(b))
                .map(ofTable),
            ],
            [
              own,
              [
                ...families.map(([id, name]) => tile(id, id, name, "Any compatible server", "")),
                ...local.map((s) => tile(s, s.id, s.name, s.baseUrl.replace("http://", ""), "")),
                ...shown.filter((p) => p.local).map(ofTable),
              ],
            ],
            ["More providers", shown.filter((p) => rank(p) < 0 && !p.local).map(ofTable)],
          ];
          return (
            <>
              <p class="muted small" role="status">
                {shown.length} of {count(data.length, "provider")}
                {!!query && local.length > 0 && `, ${count(local.length, "server")}`}
              </p>
              {groups.map(
                ([title, tiles]) =>
                  tiles.length > 0 && (
                    <section key={title} class="stack" aria-label={title}>
                      <h2>{title}</h2>
                      {title === own && data.some((p) => p.localOff) && (
                        <p class="muted small">
                          This gateway does not call servers on this computer or its network. To allow it, stop weir and
                          start it with <code>ALLOW_PRIVATE_UPSTREAMS=true weir serve</code>; on Cloudflare that is not
                          possible.
                        </p>
                      )}
                      <ul class="tiles">{tiles}</ul>
                    </section>
                  ),
              )}
              {shown.length === 0 && local.length === 0 && (
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
