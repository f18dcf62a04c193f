import { useMemo } from "preact/hooks";
import type { PageProps } from "../app";
import { useLoad } from "../hooks";
import { Lazy } from "../lazy";
import { useFilter } from "../route";
import { Button, Empty, Field, Load, Page, Section, Table, Tabs, count, number } from "../ui";
import { money } from "../format";
import type { ConnectionRow } from "../connections";
import { csv, download } from "./usage/csv";
import { keyName, type KeyRow } from "./keys";
import type { Line } from "./usage/chart";

// UsageRow is a row of GET /api/usage: clients' requests, and their attempts with
// providers.
interface UsageRow {
  day: string;
  keyId?: string;
  connectionId?: string;
  provider?: string;
  model?: string;
  endpoint?: string;
  requests: number;
  failedRequests?: number;
  attempts?: number;
  failedAttempts?: number;
  inputTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  costUsd?: number;
  unpricedAttempts?: number;
  latencyMs?: number;
}

// Answer is that of GET /api/usage, with what it was grouped by.
interface Answer {
  from: string;
  to: string;
  data: UsageRow[];
  total: UsageRow;
  by: Group;
}

const tokens = (r: UsageRow) => (r.inputTokens ?? 0) + (r.outputTokens ?? 0);
const cost = (r: UsageRow) => (r.unpricedAttempts && !r.costUsd ? "–" : money(r.costUsd ?? 0));
const latency = (r: UsageRow) => (r.requests ? Math.round((r.latencyMs ?? 0) / r.requests) : 0);

type Metric = "requests" | "failed" | "attempts" | "tokens" | "cost" | "latency";
const metrics: Record<Metric, { name: string; of: (r: UsageRow) => number; text: (n: number) => string }> = {
  requests: { name: "Requests", of: (r) => r.requests, text: number },
  failed: { name: "Failed requests", of: (r) => r.failedRequests ?? 0, text: number },
  attempts: { name: "Attempts", of: (r) => r.attempts ?? 0, text: number },
  tokens: { name: "Tokens", of: tokens, text: number },
  cost: { name: "Cost", of: (r) => r.costUsd ?? 0, text: money },
  latency: { name: "Latency", of: latency, text: (n) => `${number(n)} ms` },
};

type Group = "" | "model" | "key" | "connection" | "provider" | "endpoint";
const groups: [Group, string][] = [
  ["", "None"],
  ["model", "Model"],
  ["key", "Key"],
  ["connection", "Connection"],
  ["provider", "Provider"],
  ["endpoint", "Endpoint"],
];

const maxLines = 6;
const dayMs = 86_400_000;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const loadChart = () => import("./usage/chart");

function add(to: UsageRow, r: UsageRow) {
  for (const k of [
    "requests",
    "failedRequests",
    "attempts",
    "failedAttempts",
    "inputTokens",
    "outputTokens",
    "reasoningTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "costUsd",
    "unpricedAttempts",
    "latencyMs",
  ] as const)
    to[k] = (to[k] ?? 0) + (r[k] ?? 0);
}

// Usage is what the machine's calls have used, by day and by what they were.
export default function Usage({ machine }: PageProps) {
  const [span, setSpan] = useFilter("days", "7", ["1", "7", "30", "90"] as string[]),
    [group, setGroup] = useFilter<Group>(
      "by",
      "",
      groups.map(([k]) => k),
    );
  const [metric, setMetric] = useFilter<Metric>("show", "requests", Object.keys(metrics) as Metric[]);
  const usage = useLoad(async () => {
    const now = Date.now(),
      to = dayOf(now),
      from = dayOf(now - (Number(span) - 1) * dayMs);
    return {
      ...(await machine.get<Answer>(`/usage?from=${from}&to=${to}&groupBy=day${group && "," + group}`)),
      by: group,
    };
  }, [machine, span, group]);
  const names = useLoad(async () => {
    const [keys, conns] = await Promise.all([
      machine.get<{ data: KeyRow[] }>("/keys"),
      machine.get<{ data: ConnectionRow[] }>("/providers"),
    ]);
    return new Map([
      ...keys.data.map((k) => [k.id, keyName(k)] as const),
      ...conns.data.map((c) => [c.id, c.name || c.provider] as const),
    ]);
  }, [machine]);
  const nameOf = (r: UsageRow, by: Group): string => {
    const known = (id: string | undefined, gone: string) =>
      id ? (names.data?.get(id) ?? `${id.slice(0, 8)}… (${gone})`) : "";
    switch (by) {
      case "model":
        return r.model || "no model";
      case "key":
        return known(r.keyId, "revoked") || "no key";
      case "connection":
        return known(r.connectionId, "deleted") || "no connection";
      case "provider":
        return r.provider || "no provider";
      case "endpoint":
        return r.endpoint || "other";
    }
    return "All";
  };
  const actions = (
    <Button disabled={!usage.data} onClick={() => usage.data && save(usage.data, nameOf)}>
      Export CSV
    </Button>
  );
  return (
    <Page title="Usage" intro="Days are counted in UTC and kept for 90 days." actions={actions}>
      <div class="row wrap end filters">
        <Tabs
          label="Days"
          value={span}
          items={[
            ["1", "Today"],
            ["7", "7 days"],
            ["30", "30 days"],
            ["90", "90 days"],
          ]}
          onPick={setSpan}
        />
        <div class="narrow">
          <Field label="Group by">
            <select value={group} onChange={(e) => setGroup(e.currentTarget.value as Group)}>
              {groups.map(([k, n]) => (
                <option key={k} value={k}>
                  {n}
                </option>
              ))}
            </select>
          </Field>
        </div>
        <Button onClick={() => void usage.reload()} busy={usage.loading}>
          Refresh
        </Button>
      </div>
      <Load of={usage} what="the usage" rows={4}>
        {(u) =>
          u.data.length === 0 ? (
            <Empty title="No usage in this period">
              <p>No client has called this machine in this period. Requests appear here within seconds.</p>
            </Empty>
          ) : (
            <Shown u={u} nameOf={nameOf} metric={metric} onMetric={setMetric} named={names.data} />
          )
        }
      </Load>
    </Page>
  );
}

type NameOf = (r: UsageRow, by: Group) => string;

function Shown({
  u,
  nameOf,
  metric,
  onMetric,
  named,
}: {
  u: Answer;
  nameOf: NameOf;
  metric: Metric;
  onMetric: (m: Metric) => void;
  named: unknown;
}) {
  const grouped = u.by !== "";
  const m = metrics[metric];
  // Days without calls count as none.
  const days = useMemo(() => {
    const out: string[] = [];
    for (let t = Date.parse(u.from); t <= Date.parse(u.to); t += dayMs) out.push(dayOf(t));
    return out;
  }, [u]);
  const rows = useMemo(() => {
    const by = new Map<string, { name: string; sum: UsageRow; days: Map<string, UsageRow> }>();
    for (const r of u.data) {
      const name = nameOf(r, u.by);
      let g = by.get(name);
      if (!g) by.set(name, (g = { name, sum: { day: "", requests: 0 }, days: new Map() }));
      add(g.sum, r);
      const d = g.days.get(r.day) ?? { day: r.day, requests: 0 };
      add(d, r);
      g.days.set(r.day, d);
    }
    return [...by.values()].sort((a, b) => m.of(b.sum) - m.of(a.sum) || a.name.localeCompare(b.name));
  }, [u, metric, named]);
  const lines = useMemo<Line[]>(
    () =>
      rows
        .slice(0, maxLines)
        .map((g) => ({ name: g.name, values: days.map((d) => m.of(g.days.get(d) ?? { day: d, requests: 0 })) })),
    [rows, days],
  );
  const total = u.total;
  return (
    <>
      <dl class="tilerow">
        {(Object.keys(metrics) as Metric[]).map((k) => (
          <div key={k} class="stat">
            <dt>{metrics[k].name}</dt>
            <dd>{k === "cost" ? cost(total) : metrics[k].text(metrics[k].of(total))}</dd>
          </div>
        ))}
      </dl>
      <Section
        title={`${m.name} by day`}
        actions={
          <Tabs
            label="Shown"
            value={metric}
            items={(Object.keys(metrics) as Metric[]).map((k) => [k, metrics[k].name])}
            onPick={onMetric}
          />
        }
      >
        <Lazy
          load={loadChart}
          what="the chart"
          props={{
            days,
            lines,
            format: m.text,
            whole: metric !== "cost",
            label: `${m.name} by day, from ${u.from} to ${u.to}. The numbers are in the table below.`,
          }}
        />
        {rows.length > maxLines && (
          <p class="muted small">
            The {maxLines} largest of {rows.length} are drawn; the table has all.
          </p>
        )}
        <details>
          <summary>The chart as a table</summary>
          <Table label={`${m.name} by day, in numbers`}>
            <thead>
              <tr>
                <th>Day</th>
                {lines.map((l) => (
                  <th key={l.name} class="num">
                    {l.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {days.map((d, i) => (
                <tr key={d}>
                  <th scope="row">{d}</th>
                  {lines.map((l) => (
                    <td key={l.name} class="num">
                      {m.text(l.values[i] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </Table>
        </details>
      </Section>
      <Table label="Usage">
        <thead>
          <tr>
            <th>{grouped ? "Name" : "All"}</th>
            {[
              "Requests",
              "Failed",
              "Attempts",
              "Failed attempts",
              "Input",
              "Cached",
              "Output",
              "Reasoning",
              "Cost",
              "Latency",
            ].map((h) => (
              <th key={h} class="num">
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {grouped && rows.map((g) => <Numbers key={g.name} name={g.name} r={g.sum} />)}
          <Numbers name="Total" r={total} />
        </tbody>
      </Table>
      <p class="muted small">
        A request is counted once, and failed if its client got an error. Each attempt with a provider is counted too: a
        request may need several. Token counts come from the providers.{" "}
        {(total.unpricedAttempts ?? 0) > 0 &&
          `${count(total.unpricedAttempts ?? 0, "attempt")} ${total.unpricedAttempts === 1 ? "has" : "have"} no known price and ${total.unpricedAttempts === 1 ? "is" : "are"} not in the total.`}
      </p>
    </>
  );
}

function Numbers({ name, r }: { name: string; r: UsageRow }) {
  const cells = [
    number(r.requests),
    number(r.failedRequests ?? 0),
    number(r.attempts ?? 0),
    number(r.failedAttempts ?? 0),
    number(r.inputTokens ?? 0),
    number(r.cacheReadTokens ?? 0),
    number(r.outputTokens ?? 0),
    number(r.reasoningTokens ?? 0),
    cost(r),
    r.requests ? `${number(latency(r))} ms` : "–",
  ];
  return (
    <tr>
      <th scope="row">{name}</th>
      {cells.map((c, i) => (
        <td key={i} class="num">
          {c}
        </td>
      ))}
    </tr>
  );
}

function save(u: Answer, nameOf: NameOf) {
  const head = [
    "day",
    u.by || "all",
    "requests",
    "failed_requests",
    "attempts",
    "failed_attempts",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
    "unpriced_attempts",
    "average_latency_ms",
  ];
  const rows = u.data.map((r) => [
    r.day,
    nameOf(r, u.by),
    r.requests,
    r.failedRequests ?? 0,
    r.attempts ?? 0,
    r.failedAttempts ?? 0,
    r.inputTokens ?? 0,
    r.outputTokens ?? 0,
    r.cacheReadTokens ?? 0,
    r.cacheWriteTokens ?? 0,
    r.reasoningTokens ?? 0,
    r.costUsd ?? 0,
    r.unpricedAttempts ?? 0,
    latency(r),
  ]);
  download(`usage-${u.from}-${u.to}${u.by && "-" + u.by}.csv`, "text/csv;charset=utf-8", csv(head, rows));
}
