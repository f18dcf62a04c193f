import type { ComponentChildren } from "preact";
import type { RequestRow } from "../../api-types";
import { moneyLike, monthDay, number } from "../../format";
import { Time } from "../../time";
import { Badge } from "../../ui";
import { outcome, statusText } from "./outcome";

// Estimated marks a figure that the provider did not state.
export function Estimated({ r, children }: { r: RequestRow; children: ComponentChildren }) {
  if (!r.estimated || children === "–") return <>{children}</>;
  return <span title="Estimated by weir: the provider did not state all of the tokens.">≈ {children}</span>;
}

// Models shows the model that the client asked for and, where it is another one, the
// model that it was resolved to: that of the last attempt.
export function Models({ r }: { r: RequestRow }) {
  if (!r.asked || !r.model || r.asked === r.model) return <code>{r.asked || r.model || "–"}</code>;
  return (
    <span>
      <code>{r.asked}</code> → <code>{r.model}</code>
    </span>
  );
}

const cost = moneyLike([]); // with four decimals

// Row shows a request, with its failed attempts. It links to its details.
export function Row({
  r,
  index,
  link,
  connectionName,
  keyName,
}: {
  r: RequestRow;
  /** of its row in the list, from 0 on */
  index: number;
  link: string;
  connectionName: (id?: string) => string;
  keyName: string;
}) {
  const result = outcome(r);
  const failed = result.kind === "bad";
  return (
    <tr aria-rowindex={index + 2}>
      <th scope="row" class="at">
        <a href={link}>
          <Time at={r.at} as="time" />
        </a>
        <small class="muted"> {monthDay(r.at)}</small>
      </th>
      <td class="full">
        <Models r={r} /> <span class="muted small">{r.endpoint}</span>
      </td>
      <td>
        {r.failed && (
          <ol class="tries" aria-label="Failed attempts">
            {r.failed.map((f, i) => (
              <li key={i} class="small">
                <strong>
                  <bdi>{connectionName(f.connectionId)}</bdi>
                </strong>{" "}
                {f.model && <code>{f.model}</code>} {statusText(f.status)}
                {f.text && `: ${f.text}`}
                {!f.text && f.code && ` (${f.code})`} <span class="muted">after {number(f.ms)} ms</span>
              </li>
            ))}
          </ol>
        )}
        {r.attempts === 0 ? (
          <span class="muted">Not sent</span>
        ) : failed ? (
          <span class="muted">Failed</span>
        ) : (
          <bdi>{connectionName(r.connectionId)}</bdi>
        )}
      </td>
      <td class="why">
        <Badge kind={result.kind}>{result.text}</Badge>
        {r.error && result.kind !== "" && (
          <>
            {" "}
            <code class="small">{r.error}</code>
          </>
        )}
        {r.dropped && <div class="muted small">Not sent: {r.dropped.join(", ")}</div>}
      </td>
      <td class="num" title={r.firstMs ? `First token after ${number(r.firstMs)} ms` : undefined}>
        {number(r.latencyMs)} ms
      </td>
      <td class="num">
        <Estimated r={r}>
          {r.inputTokens || r.outputTokens ? `${number(r.inputTokens ?? 0)} + ${number(r.outputTokens ?? 0)}` : "–"}
        </Estimated>
      </td>
      <td class="num">
        <Estimated r={r}>{r.priced ? cost(r.costUsd ?? 0) : "–"}</Estimated>
      </td>
      <td>
        <bdi>{keyName}</bdi>
      </td>
    </tr>
  );
}
