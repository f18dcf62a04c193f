import { providerName } from "../../connections";
import { now } from "../../clock";
import type { ComponentChildren } from "preact";
import type { RequestRow } from "../../api-types";
import { lowerBound, moneyLike, type Write } from "../../amounts";
import { monthDay, number } from "../../format";
import { Middle } from "../../middle";
import { tooltipOf } from "../../named";
import { Time } from "../../time";
import { Badge, Cut } from "../../ui";
import { answered, changed } from "./changed";
import { outcome, statusText, unreachable } from "./outcome";
import "./row.css";

// Estimated marks a figure that the provider did not state.
export function Estimated({ r, children }: { r: RequestRow; children: ComponentChildren }) {
  if (!r.estimated || children === "–" || String(children).startsWith("≥")) return <>{children}</>;
  return <span title="Estimated: the provider did not report all tokens.">≈ {children}</span>;
}

// Models shows the model that the client asked for and, where it is another one, the
// model that it was resolved to: that of the last attempt.
export function Models({ r }: { r: RequestRow }) {
  const [first, then] = r.asked && r.model && r.asked !== r.model ? [r.asked, r.model] : [r.asked || r.model || "–"];
  return (
    <span class="models">
      <code>
        <Middle end={then ? 6 : undefined}>{first}</Middle>
      </code>
      {then && (
        <>
          <span>{" → "}</span>
          <code>
            <Middle end={6}>{then}</Middle>
          </code>
        </>
      )}
    </span>
  );
}

// costText returns the cost of a request, as a lower bound if a part of it is unknown.
export const costText = (r: RequestRow, write: Write) =>
  r.priced || r.costUsd ? lowerBound(write, r.costUsd ?? 0, r.priced ? 0 : 1) : "–";

const cost = moneyLike([]); // with four decimals

const usual = "/v1/chat/completions"; // the endpoint that goes without saying

// Row shows a request on one line. It links to its details.
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
  const date = monthDay(r.at);
  // The code of the error, and what was left out or set, are in the tooltip and in the details.
  const [notSent, set] = changed(r.dropped);
  const about = [r.error, notSent && `Not sent: ${notSent}`, set && `Set by weir: ${set}`].filter(Boolean).join("\n");
  return (
    <tr aria-rowindex={index + 2}>
      <th scope="row" class="at">
        <a href={link}>
          <Time at={r.at} as="time" />
        </a>
        {date !== monthDay(now()) && <small class="muted"> {date}</small>}
      </th>
      <td class="fill model">
        <Models r={r} /> {r.endpoint !== usual && <span class="muted small spare">{r.endpoint}</span>}
      </td>
      <td class="fill served">
        <ServedBy r={r} connectionName={connectionName} />
      </td>
      <td class="why" title={about || undefined}>
        {result.kind === "good" ? (
          <span class="muted">{result.text}</span>
        ) : (
          <Badge kind={result.kind}>{result.text}</Badge>
        )}
      </td>
      <td class="num" title={r.firstMs ? `First token after ${number(r.firstMs)} ms` : undefined}>
        {number(r.latencyMs)} ms
      </td>
      <td class="num spare">
        <Estimated r={r}>
          {r.inputTokens || r.outputTokens ? `${number(r.inputTokens ?? 0)} + ${number(r.outputTokens ?? 0)}` : "–"}
        </Estimated>
      </td>
      <td class="num">
        {!r.priced && !r.costUsd && (r.inputTokens || r.unpricedParts?.length) ? (
          <span class="muted">Unknown</span>
        ) : (
          <Estimated r={r}>{costText(r, cost)}</Estimated>
        )}
      </td>
      <td class="fill key spare">
        <Named id={r.keyId} name={keyName} />
      </td>
    </tr>
  );
}

// Named shows the name of a key or an account, of one that has no name the id in the tooltip.
export const Named = ({ id, name = "" }: { id?: string; name?: string }) => (
  <Cut title={tooltipOf(name, id)}>{name}</Cut>
);

// ServedBy shows the account that answered, and those that were tried before.
function ServedBy({ r, connectionName }: { r: RequestRow; connectionName: (id?: string) => string }) {
  if (r.attempts === 0) return <span class="muted">Not sent</span>;
  const served = answered(r);
  return (
    <>
      {served && (
        <Named id={r.connectionId} name={connectionName(r.connectionId) || providerName(r.provider ?? "", [])} />
      )}
      {r.failed && (
        <>
          {served && <span class="muted"> after </span>}
          <ol class="tries" aria-label="Failed attempts">
            {r.failed.map((f, i) => {
              const name = connectionName(f.connectionId) || providerName(f.provider, []);
              const reason = f.text ? `: ${f.text}` : f.code ? ` (${f.code})` : "";
              return (
                <li
                  key={i}
                  title={`${name} ${f.model ?? ""} ${statusText(f.status, f.code)}${reason} after ${number(f.ms)} ms`}
                >
                  <Named id={f.connectionId} name={name} /> {unreachable(f.code) || f.status}
                </li>
              );
            })}
          </ol>
        </>
      )}
      {!served && !r.failed && <span class="muted">Failed</span>}
    </>
  );
}
