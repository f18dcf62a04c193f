import { useEffect, useState } from "preact/hooks";
import type { PageProps } from "../app";
import { useAction, useIdle, useLoad, useSettled } from "../hooks";
import { useFilter } from "../route";
import { Badge, Button, Empty, ErrorBox, Field, Load, Page, Search, Table, number } from "../ui";
import type { ConnectionRow } from "../connections";
import { keyName, type KeyRow } from "./keys";
import { money } from "../format";

interface Attempt {
  connectionId: string;
  provider: string;
  model?: string;
  status: number;
  code?: string;
  text?: string;
  ms: number;
}

// RequestRow is a call as GET /api/requests lists it: nothing of its text.
interface RequestRow {
  seq: number;
  id: string;
  at: number;
  keyId?: string;
  endpoint: string;
  asked?: string;
  model?: string;
  provider?: string;
  connectionId?: string;
  status: number;
  error?: string;
  latencyMs: number;
  attempts: number;
  failed?: Attempt[];
  dropped?: string[];
  inputTokens?: number;
  outputTokens?: number;
  costUsd?: number;
  priced?: boolean;
}

interface Answer {
  data: RequestRow[];
  has_more: boolean;
}

// statuses are the values of the query parameter status.
const statuses: [string, string][] = [
  ["", "All"],
  ["2xx", "Answered (2xx)"],
  ["error", "Failed"],
  ["4xx", "4xx"],
  ["429", "429 rate limited"],
  ["5xx", "5xx"],
  ["client_left", "Client left"],
];

const perPage = 50;
const everyMs = 5000;
const idleMs = 10 * 60_000;

const statusWords: Record<number, string> = {
  400: "request refused",
  401: "credential refused",
  402: "no credit left",
  403: "not allowed",
  404: "not found",
  408: "timed out",
  413: "too large",
  422: "request refused",
  429: "rate limited",
  499: "client left",
  500: "server error",
  502: "no usable answer",
  503: "not available",
  504: "no answer in time",
  529: "overloaded",
};

// Requests are the last calls of the machine's clients: what was asked, who
// served it, which attempts failed and why.
export default function Requests({ machine }: PageProps) {
  const [text, setText] = useFilter("q", ""),
    [key, setKey] = useFilter("key", ""),
    [conn, setConn] = useFilter("connection", "");
  const [model, setModel] = useFilter("model", ""),
    [status, setStatus] = useFilter(
      "status",
      "",
      statuses.map(([k]) => k),
    ),
    [outcome, setOutcome] = useFilter("failed", "", ["", "true", "false"] as string[]);
  const q = useSettled(text.trim(), 250);
  const [auto, setAuto] = useState(true);
  const [older, setOlder] = useState<RequestRow[]>([]),
    [more, setMore] = useState(true);
  const query = (before = 0) =>
    "/requests?" +
    new URLSearchParams({
      limit: String(perPage),
      ...(q && { q }),
      ...(key && { key }),
      ...(conn && { connection: conn }),
      ...(model && { model }),
      ...(status && { status }),
      ...(outcome && { failed: outcome }),
      ...(before && { before: String(before) }),
    });
  const list = useLoad(() => machine.get<Answer>(query()), [machine, q, key, conn, model, status, outcome]);
  useEffect(() => {
    setOlder([]);
    setMore(true);
  }, [machine, q, key, conn, model, status, outcome]);
  const known = useLoad(async () => {
    const [keys, conns] = await Promise.all([
      machine.get<{ data: KeyRow[] }>("/keys"),
      machine.get<{ data: ConnectionRow[] }>("/providers"),
    ]);
    return {
      keys: keys.data.map((k) => [k.id, keyName(k)] as const),
      conns: conns.data.map((c) => [c.id, c.name || c.provider] as const),
    };
  }, [machine]);
  const idle = useIdle(idleMs);
  // While older ones are shown, the list stands still.
  useEffect(() => {
    if (!auto || idle || older.length > 0) return;
    const timer = setInterval(() => {
      if (!document.hidden) void list.reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [auto, idle, list.reload, older.length]);
  const next = useAction();
  const loadMore = (last: RequestRow) =>
    next.run(async () => {
      const page = await machine.get<Answer>(query(last.seq));
      setOlder((o) => [...o, ...page.data]);
      setMore(page.has_more);
    });
  const nameOf = (id: string | undefined, of: "keys" | "conns") =>
    id ? (known.data?.[of].find(([k]) => k === id)?.[1] ?? `${id.slice(0, 8)}…`) : "";
  const filtered = !!(q || key || conn || model || status || outcome);
  return (
    <Page
      title="Requests"
      intro="The latest ~1,000 requests. Prompts and answers are never stored."
      actions={
        <>
          <label class="row tight">
            <input type="checkbox" checked={auto} onChange={(e) => setAuto(e.currentTarget.checked)} />
            Auto-refresh{auto && idle && " (paused)"}
          </label>
          <Button
            onClick={() => {
              setOlder([]);
              setMore(true);
              void list.reload();
            }}
          >
            Refresh
          </Button>
        </>
      }
    >
      <div class="row wrap end filters">
        <Search label="Search models, endpoints, errors, ids" value={text} onInput={setText} />
        <div class="narrow">
          <Field label="Key">
            <select value={key} onChange={(e) => setKey(e.currentTarget.value)}>
              <option value="">All</option>
              {known.data?.keys.map(([id, n]) => (
                <option key={id} value={id}>
                  {n}
                </option>
              ))}
            </select>
          </Field>
        </div>
        <div class="narrow">
          <Field label="Connection">
            <select value={conn} onChange={(e) => setConn(e.currentTarget.value)}>
              <option value="">All</option>
              {known.data?.conns.map(([id, n]) => (
                <option key={id} value={id}>
                  {n}
                </option>
              ))}
            </select>
          </Field>
        </div>
        <div class="narrow">
          <Field label="Model">
            <input
              autocapitalize="none"
              spellcheck={false}
              placeholder="All"
              value={model}
              onChange={(e) => setModel(e.currentTarget.value.trim())}
            />
          </Field>
        </div>
        <div class="narrow">
          <Field label="Status">
            <select value={status} onChange={(e) => setStatus(e.currentTarget.value)}>
              {statuses.map(([k, n]) => (
                <option key={k} value={k}>
                  {n}
                </option>
              ))}
            </select>
          </Field>
        </div>
        <div class="narrow">
          <Field label="Attempts">
            <select value={outcome} onChange={(e) => setOutcome(e.currentTarget.value)}>
              <option value="">All</option>
              <option value="true">Had failures</option>
              <option value="false">No failures</option>
            </select>
          </Field>
        </div>
      </div>
      <Load of={list} what="the requests" rows={6}>
        {({ data, has_more }) => {
          const all = older.length > 0 ? [...data, ...older.filter((r) => r.seq < data[data.length - 1].seq)] : data;
          if (all.length === 0) {
            return filtered ? (
              <Empty title="No request matches" />
            ) : (
              <Empty title="No requests yet">
                <p>Requests appear here about a second after they are answered.</p>
              </Empty>
            );
          }
          return (
            <>
              <Table label="Requests" stacked>
                <thead>
                  <tr>
                    <th>Time</th>
                    <th>Asked for</th>
                    <th>Served by</th>
                    <th>Outcome</th>
                    <th class="num">Latency</th>
                    <th class="num">Tokens</th>
                    <th class="num">Cost</th>
                    <th>Key</th>
                  </tr>
                </thead>
                <tbody>
                  {all.map((r) => (
                    <Row key={r.seq} r={r} conn={(id) => nameOf(id, "conns")} keyLabel={nameOf(r.keyId, "keys")} />
                  ))}
                </tbody>
              </Table>
              {next.error && <ErrorBox>{next.error}</ErrorBox>}
              {(older.length > 0 ? more : has_more) && (
                <Button busy={next.busy} onClick={() => void loadMore(all[all.length - 1])}>
                  Load more
                </Button>
              )}
            </>
          );
        }}
      </Load>
    </Page>
  );
}

function Row({ r, conn, keyLabel }: { r: RequestRow; conn: (id?: string) => string; keyLabel: string }) {
  const left = r.status === 499 || r.error === "client_closed";
  const bad = r.status >= 400 && !left,
    broke = !bad && !left && r.error;
  return (
    <tr>
      <th scope="row" class="at">
        <time dateTime={new Date(r.at).toISOString()} title={r.id}>
          {new Date(r.at).toLocaleTimeString("en", { hour12: false })}
          <small class="muted"> {new Date(r.at).toLocaleDateString("en", { day: "numeric", month: "short" })}</small>
        </time>
      </th>
      <td class="full">
        <code>{r.asked || "–"}</code>
        <div class="muted small">{r.endpoint}</div>
      </td>
      <td class="full" data-label="Served by">
        {r.attempts === 0 ? (
          <span class="muted">Not sent</span>
        ) : bad ? (
          <span class="muted">Failed</span>
        ) : (
          <>
            <code>{r.model}</code>
            <div class="muted small">
              <bdi>{conn(r.connectionId)}</bdi>
            </div>
          </>
        )}
      </td>
      <td class="why full">
        {left ? (
          <Badge>Client left</Badge>
        ) : (
          <Badge kind={bad ? "bad" : broke ? "warn" : "good"}>
            {r.status}
            {bad ? ` ${statusWords[r.status] ?? ""}` : broke ? " interrupted" : ""}
          </Badge>
        )}
        {r.error && !left && (
          <div class="small">
            <code>{r.error}</code>
          </div>
        )}
        {r.failed && (
          <ol class="tries" aria-label="Failed attempts">
            {r.failed.map((f, i) => (
              <li key={i} class="small">
                <strong>
                  <bdi>{conn(f.connectionId)}</bdi>
                </strong>{" "}
                {f.model && <code>{f.model}</code>} {f.status} {statusWords[f.status] ?? ""}
                {f.text && `: ${f.text}`}
                {!f.text && f.code && ` (${f.code})`} <span class="muted">after {number(f.ms)} ms</span>
              </li>
            ))}
          </ol>
        )}
        {r.dropped && <div class="muted small">dropped: {r.dropped.join(", ")}</div>}
      </td>
      <td class="num" data-label="Latency">
        {number(r.latencyMs)} ms
      </td>
      <td class="num" data-label="Tokens">
        {r.inputTokens || r.outputTokens ? `${number(r.inputTokens ?? 0)} + ${number(r.outputTokens ?? 0)}` : "–"}
      </td>
      <td class="num" data-label="Cost">
        {r.priced ? money(r.costUsd ?? 0) : "–"}
      </td>
      <td data-label="Key">
        <bdi>{keyLabel}</bdi>
      </td>
    </tr>
  );
}
