import type { RequestRow } from "../../api-types";
import { money, monthDay, number, time } from "../../format";
import { Badge } from "../../ui";

const statusTexts: Record<number, string> = {
  400: "bad request",
  401: "key refused",
  402: "out of credit",
  403: "forbidden",
  404: "not found",
  408: "timed out",
  413: "too large",
  422: "bad request",
  429: "rate limited",
  499: "client disconnected",
  500: "server error",
  502: "bad gateway",
  503: "unavailable",
  504: "timed out",
  529: "overloaded",
};

// Row shows a request, with its failed attempts.
export function Row({
  r,
  connectionName,
  keyName,
}: {
  r: RequestRow;
  connectionName: (id?: string) => string;
  keyName: string;
}) {
  const disconnected = r.status === 499 || r.error === "client_closed";
  const failed = r.status >= 400 && !disconnected,
    interrupted = !failed && !disconnected && r.error;
  return (
    <tr>
      <th scope="row" class="at">
        <time dateTime={new Date(r.at).toISOString()} title={r.id}>
          {time(r.at)}
          <small class="muted"> {monthDay(r.at)}</small>
        </time>
      </th>
      <td class="full">
        <code>{r.asked || "–"}</code>
        <div class="muted small">{r.endpoint}</div>
      </td>
      <td class="full" data-label="Served by">
        {r.attempts === 0 ? (
          <span class="muted">Not sent</span>
        ) : failed ? (
          <span class="muted">Failed</span>
        ) : (
          <>
            <code>{r.model}</code>
            <div class="muted small">
              <bdi>{connectionName(r.connectionId)}</bdi>
            </div>
          </>
        )}
      </td>
      <td class="why full">
        {disconnected ? (
          <Badge>Client disconnected</Badge>
        ) : (
          <Badge kind={failed ? "bad" : interrupted ? "warn" : "good"}>
            {r.status}
            {failed ? ` ${statusTexts[r.status] ?? ""}` : interrupted ? " interrupted" : ""}
          </Badge>
        )}
        {r.error && !disconnected && (
          <div class="small">
            <code>{r.error}</code>
          </div>
        )}
        {r.failed && (
          <ol class="tries" aria-label="Failed attempts">
            {r.failed.map((f, i) => (
              <li key={i} class="small">
                <strong>
                  <bdi>{connectionName(f.connectionId)}</bdi>
                </strong>{" "}
                {f.model && <code>{f.model}</code>} {f.status} {statusTexts[f.status] ?? ""}
                {f.text && `: ${f.text}`}
                {!f.text && f.code && ` (${f.code})`} <span class="muted">after {number(f.ms)} ms</span>
              </li>
            ))}
          </ol>
        )}
        {r.dropped && <div class="muted small">Not sent: {r.dropped.join(", ")}</div>}
      </td>
      <td class="num" data-label="Latency">
        {number(r.latencyMs)} ms
        {r.firstMs && <div class="muted small">first token {number(r.firstMs)} ms</div>}
      </td>
      <td class="num" data-label="Tokens">
        {r.inputTokens || r.outputTokens ? `${number(r.inputTokens ?? 0)} + ${number(r.outputTokens ?? 0)}` : "–"}
      </td>
      <td class="num" data-label="Cost">
        {r.priced ? money(r.costUsd ?? 0) : "–"}
      </td>
      <td data-label="Key">
        <bdi>{keyName}</bdi>
      </td>
    </tr>
  );
}
