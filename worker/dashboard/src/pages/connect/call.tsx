import { useEffect, useRef } from "preact/hooks";
import type { Machine } from "../../api";
import type { KeyRow, List, RequestRow, ToolRow } from "../../api-types";
import { money } from "../../amounts";
import { number } from "../../format";
import { useLoad, useRefresh } from "../../hooks";
import { Icon } from "../../icons";
import { Load, Section } from "../../layout";
import { keyName } from "../../names";
import { to } from "../../route";
import { Time } from "../../time";
import { Badge } from "../../ui";
import { outcome } from "../requests/outcome";

const waitingMs = 2000; // between looks for the first call
const connectedMs = 15_000; // and for the next ones

// lastUsed returns the key of a tool: of the keys with its name, as its command creates
// them, the one that was used last, or else the newest.
export function lastUsed(tool: ToolRow, keys: KeyRow[]): KeyRow | undefined {
  return keys
    .filter((k) => k.name === tool.name)
    .toSorted((a, b) => (b.lastUsedAt ?? 0) - (a.lastUsedAt ?? 0) || b.createdAt - a.createdAt)[0];
}

interface Call {
  /** of the tool, if it has one */
  key?: KeyRow;
  /** the latest one; without a key of the tool, one of any key since the page was opened */
  request?: RequestRow;
  requestKey?: KeyRow;
}

// LastCall waits for the first call of a tool and shows its latest one.
export function LastCall({
  machine,
  tool,
  onConnected,
}: {
  machine: Machine;
  tool: ToolRow;
  /** gets the id of the latest call of the tool's key, if it succeeded */
  onConnected: (id: string) => void;
}) {
  const opened = useRef<number | null>(null); // the number of the latest request then
  const call = useLoad(async (): Promise<Call> => {
    const keys = await machine.list<KeyRow>("/keys");
    const key = lastUsed(tool, keys);
    const latest = async (query: string) =>
      (await machine.get<List<RequestRow>>(`/requests?limit=1${query}`)).data.at(0);
    if (key) return { key, requestKey: key, request: await latest(`&key=${encodeURIComponent(key.id)}`) };
    const request = await latest("");
    opened.current ??= request?.seq ?? 0;
    return request && request.seq > opened.current
      ? { request, requestKey: keys.find((k) => k.id === request.keyId) }
      : {};
  }, [machine, tool]);
  const { request } = call.data ?? {};
  const ok = !!request && (request.error === "client_closed" || (request.status < 400 && !request.error));
  const connected = ok && call.data?.key ? request.id : "";
  useEffect(() => {
    if (connected) onConnected(connected);
  }, [connected]);
  useRefresh(call.reload, ok ? connectedMs : waitingMs);
  return (
    <Section title={request ? "Last request" : "First request"}>
      <Load of={call} what="the last request" rows={1}>
        {({ key, requestKey }) => (
          <>
            <p class="row tight" role="status">
              {request ? (
                <>
                  <Badge kind={ok ? "good" : "bad"}>
                    <Icon name={ok ? "check" : "warn"} size={14} />
                  </Badge>
                  {ok
                    ? key
                      ? `${tool.name} is connected.`
                      : "First request received."
                    : key
                      ? `The last request of ${tool.name} failed.`
                      : "Your first request failed."}
                </>
              ) : key?.lastUsedAt ? (
                <span>
                  {tool.name} made its last request on <Time at={key.lastUsedAt} />.
                </span>
              ) : (
                <>
                  <span class="spinner" aria-hidden="true" />
                  Waiting for the first request…
                </>
              )}
            </p>
            {request ? (
              <Facts machine={machine} r={request} k={requestKey} />
            ) : (
              !key?.lastUsedAt && (
                <p class="muted small">
                  {key ? (
                    <>
                      Its key was created on <Time at={key.createdAt} />. Send a prompt with {tool.name}.
                    </>
                  ) : (
                    `${tool.script ? "Run the command" : "Save the settings"}, then send a prompt with ${tool.name}.`
                  )}
                </p>
              )
            )}
          </>
        )}
      </Load>
    </Section>
  );
}

function Facts({ machine, r, k }: { machine: Machine; r: RequestRow; k?: KeyRow }) {
  const tokens = (r.inputTokens ?? 0) + (r.outputTokens ?? 0);
  const reason = r.error || r.failed?.at(-1)?.text;
  return (
    <>
      <dl class="facts small">
        <dt>Time</dt>
        <dd>
          <Time at={r.at} />
        </dd>
        <dt>Model</dt>
        <dd>
          <code>{r.asked || "–"}</code>
          {r.model && r.model !== r.asked && (
            <>
              , served by <code>{r.model}</code>
            </>
          )}
        </dd>
        <dt>Status</dt>
        <dd>
          {outcome(r).text} {reason && <bdi>{reason}</bdi>}
        </dd>
        <dt>Latency</dt>
        <dd>
          {number(r.latencyMs)} ms{r.firstMs ? `, first token after ${number(r.firstMs)} ms` : ""}
        </dd>
        {tokens > 0 && (
          <>
            <dt>Tokens</dt>
            <dd>
              {number(r.inputTokens ?? 0)} in, {number(r.outputTokens ?? 0)} out
            </dd>
          </>
        )}
        {r.priced && (
          <>
            <dt>Cost</dt>
            <dd>{money(r.costUsd ?? 0)}</dd>
          </>
        )}
        {k && (
          <>
            <dt>Key</dt>
            <dd>
              <bdi>{keyName(k)}</bdi>
            </dd>
          </>
        )}
      </dl>
      <p class="small">
        <a href={to(machine.id, "requests", r.id)}>Show request</a>
      </p>
    </>
  );
}
