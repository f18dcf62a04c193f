import { useState } from "preact/hooks";
import type { Machine } from "../api";
import type { PageProps } from "../app";
import { Dialog } from "../dialog";
import { useAction, useLoad, type Loaded } from "../hooks";
import { to, useFilter } from "../route";
import { toast } from "../toast";
import {
  Badge,
  Button,
  Code,
  Empty,
  ErrorBox,
  Load,
  Notice,
  Page,
  Search,
  Section,
  Table,
  Tabs,
  count,
  number,
} from "../ui";
import { Aliases } from "./models/aliases";
import { kindNames } from "../connections";
import { Customs } from "./models/customs";

interface Entry {
  id: string;
  owned_by: string;
  kind?: string;
  context_length?: number;
  max_completion_tokens?: number;
  dimensions?: number;
  capabilities?: Record<string, boolean>;
  /** USD per million tokens: input, output, cache_read, cache_write */
  pricing?: Record<string, number>;
}

// columns are the figures of a list, left out where no model has any.
const columns: [name: string, of: (m: Entry) => string][] = [
  ["Context", (m) => (m.context_length ? number(m.context_length) : "")],
  ["Output", (m) => (m.max_completion_tokens ? number(m.max_completion_tokens) : "")],
  ["Dimensions", (m) => (m.dimensions ? number(m.dimensions) : "")],
  ["$ in", (m) => dollars(m.pricing?.input)],
  ["$ out", (m) => dollars(m.pricing?.output)],
];

// dollars tells a price per million tokens.
function dollars(rate?: number): string {
  if (rate === undefined) return "";
  return rate === 0 ? "free" : rate.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 4 });
}

interface Info extends Entry {
  name?: string;
  endpoint?: string | null;
  params?: string[];
  input_modalities?: string[];
  output_modalities?: string[];
}

const segments = [
  ["llm", "Chat"],
  ["embedding", "Embeddings"],
  ["image", "Images"],
  ["tts", "Speech"],
  ["stt", "Transcription"],
  ["image-to-text", "Image to text"],
  ["video", "Video"],
  ["music", "Music"],
  ["rerank", "Rerank"],
  ["web", "Web"],
] as [string, string][];

const mostShown = 300;

// Models is the list as clients of the machine see it, and what changes it.
export default function Models({ machine }: PageProps) {
  const [segment, setSegment] = useFilter(
    "kind",
    "llm",
    segments.map(([k]) => k),
  );
  const [open, setOpen] = useState<Entry | null>(null);
  const list = useLoad(
    async () => (await machine.get<{ data: Entry[] }>(`/models/list/${segment}`)).data,
    [machine, segment],
  );
  const off = useLoad(
    async () => (await machine.get<{ disabled: Record<string, string[]> }>("/models/disabled")).disabled,
    [machine],
  );
  const connected = useLoad(
    async () => (await machine.get<{ data: { isActive: boolean }[] }>("/providers")).data.some((c) => c.isActive),
    [machine],
  );
  const reload = async () => {
    await Promise.all([list.reload(), off.reload()]);
  };
  return (
    <Page title="Models" intro="The list as clients of this machine see it.">
      {connected.data === false && (
        <Notice kind="warn">
          No provider is connected, so this is the built-in catalogue: nothing of it can be called yet.{" "}
          <a href={to(machine.id, "providers", "add")}>Connect one</a>
        </Notice>
      )}
      <Tabs label="Kind" value={segment} items={segments} onPick={setSegment} />
      <List key={segment} machine={machine} list={list} onOpen={setOpen} onChange={reload} />
      <Disabled machine={machine} off={off} onChange={reload} />
      <Aliases machine={machine} models={(list.data ?? []).map((m) => m.id)} />
      <Customs machine={machine} onChange={list.reload} />
      {open && <Detail machine={machine} m={open} segment={segment} onClose={() => setOpen(null)} />}
    </Page>
  );
}

function List({
  machine,
  list,
  onOpen,
  onChange,
}: {
  machine: Machine;
  list: Loaded<Entry[]>;
  onOpen: (m: Entry) => void;
  onChange: () => Promise<void>;
}) {
  const [search, setSearch] = useFilter("q", "");
  const hide = useAction();
  const disable = (m: Entry) =>
    hide.run(async () => {
      await machine.post("/models/disabled", { providerAlias: m.owned_by, ids: [m.id.slice(m.owned_by.length + 1)] });
      toast(`${m.id} is disabled.`);
      await onChange();
    });
  return (
    <Load of={list} what="the models" rows={6}>
      {(data) => {
        if (data.length === 0) {
          return (
            <Empty title="No models of this kind">
              <p>Connect a provider that has some.</p>
              <a class="button" href={to(machine.id, "providers", "add")}>
                Add a provider
              </a>
            </Empty>
          );
        }
        const wanted = search.trim().toLowerCase();
        const shown = data.filter((m) => m.id.toLowerCase().includes(wanted));
        const figures = columns.filter(([, of]) => data.some((m) => of(m))),
          abilities = data.some((m) => m.capabilities);
        return (
          <>
            <div class="row wrap between">
              <Search label="Filter the models" value={search} onInput={setSearch} />
              <p class="muted small" role="status">
                {shown.length === data.length
                  ? count(data.length, "model")
                  : `${number(shown.length)} of ${count(data.length, "model")}`}
              </p>
            </div>
            {hide.error && <ErrorBox>{hide.error}</ErrorBox>}
            {shown.length === 0 ? (
              <Empty title="No model matches" />
            ) : (
              <Table label="Models">
                <thead>
                  <tr>
                    <th scope="col">Model</th>
                    <th scope="col" class="desk">
                      From
                    </th>
                    {figures.map(([name]) => (
                      <th key={name} scope="col" class="num desk">
                        {name}
                      </th>
                    ))}
                    {abilities && (
                      <th scope="col" class="desk">
                        Can
                      </th>
                    )}
                    <th scope="col">
                      <span class="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {shown.slice(0, mostShown).map((m) => (
                    <tr key={m.id}>
                      <th scope="row">
                        <Button kind="link" onClick={() => onOpen(m)}>
                          {m.id}
                        </Button>
                      </th>
                      <td class="desk">{m.owned_by}</td>
                      {figures.map(([name, of]) => (
                        <td key={name} class="num desk">
                          {of(m) || "–"}
                        </td>
                      ))}
                      {abilities && (
                        <td class="desk can">
                          <small class="muted">
                            {Object.entries(m.capabilities ?? {})
                              .filter(([, v]) => v)
                              .map(([k]) => k.replaceAll("_", " "))
                              .join(" · ")}
                          </small>
                        </td>
                      )}
                      <td class="num">
                        {m.id.startsWith(m.owned_by + "/") && (
                          <Button
                            kind="quiet"
                            disabled={hide.busy}
                            aria-label={`Disable ${m.id}`}
                            onClick={() => void disable(m)}
                          >
                            Disable
                          </Button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </Table>
            )}
            {figures.some(([name]) => name.startsWith("$")) && (
              <p class="muted small desk">Prices are in US dollars for a million tokens.</p>
            )}
            {shown.length > mostShown && (
              <p class="muted">{number(shown.length - mostShown)} more: filter to see them.</p>
            )}
          </>
        );
      }}
    </Load>
  );
}

function Disabled({
  machine,
  off,
  onChange,
}: {
  machine: Machine;
  off: Loaded<Record<string, string[]>>;
  onChange: () => Promise<void>;
}) {
  const act = useAction();
  const enable = (alias: string, id: string) =>
    act.run(async () => {
      await machine.del(`/models/disabled?providerAlias=${encodeURIComponent(alias)}&id=${encodeURIComponent(id)}`);
      toast(`${alias}/${id} is enabled.`);
      await onChange();
    });
  return (
    <Section title="Disabled models" intro="Hidden from the list, and refused when called.">
      <Load of={off} what="the disabled models" rows={1}>
        {(all) => {
          const rows = Object.entries(all).flatMap(([alias, ids]) => ids.map((id) => [alias, id] as const));
          if (rows.length === 0) return <p class="muted">None: every model of the providers is offered.</p>;
          return (
            <ul class="plain">
              {rows.map(([alias, id]) => (
                <li key={`${alias}/${id}`} class="row between">
                  <code>
                    {alias}/{id}
                  </code>
                  <Button
                    disabled={act.busy}
                    aria-label={`Enable ${alias}/${id}`}
                    onClick={() => void enable(alias, id)}
                  >
                    Enable
                  </Button>
                </li>
              ))}
            </ul>
          );
        }}
      </Load>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
    </Section>
  );
}

// Detail is what is known of one model: limits, modalities, prices.
function Detail({
  machine,
  m,
  segment,
  onClose,
}: {
  machine: Machine;
  m: Entry;
  segment: string;
  onClose: () => void;
}) {
  const info = useLoad(
    () => machine.get<Info>(`/models/info?id=${encodeURIComponent(m.id)}&kind=${m.kind ?? segment}`),
    [m.id],
  );
  const limits = (i: Info) =>
    [
      i.context_length && `${number(i.context_length)} tokens of context`,
      i.max_completion_tokens && `${number(i.max_completion_tokens)} of output`,
      i.dimensions && `${number(i.dimensions)} dimensions`,
    ]
      .filter(Boolean)
      .join(", ");
  return (
    <Dialog title={m.id} onClose={onClose} wide>
      <Load of={info} what="what is known of it" rows={2}>
        {(i) => (
          <>
            <dl class="facts">
              {i.name && i.name !== i.id && (
                <>
                  <dt>Name</dt>
                  <dd>{i.name}</dd>
                </>
              )}
              <dt>Kind</dt>
              <dd>{kindNames[i.kind ?? ""] ?? i.kind}</dd>
              <dt>Endpoint</dt>
              <dd>{i.endpoint ? <code>{i.endpoint}</code> : "none"}</dd>
              <dt>Limits</dt>
              <dd>{limits(i) || "not known"}</dd>
              <dt>Takes</dt>
              <dd>{i.input_modalities?.join(", ") || "not known"}</dd>
              <dt>Gives</dt>
              <dd>{i.output_modalities?.join(", ") || "not known"}</dd>
              <dt>Price</dt>
              <dd>
                {i.pricing
                  ? Object.entries(i.pricing).map(([k, v]) => (
                      <div key={k}>
                        {k.replaceAll("_", " ")}: ${v} per million tokens
                      </div>
                    ))
                  : "not known"}
              </dd>
            </dl>
            {i.params && i.params.length > 0 && (
              <>
                <h3>Request fields</h3>
                <p class="badges">
                  {i.params.map((p) => (
                    <Badge key={p}>{p}</Badge>
                  ))}
                </p>
              </>
            )}
            <Code label="Model id" text={i.id} />
          </>
        )}
      </Load>
    </Dialog>
  );
}
