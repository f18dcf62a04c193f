import { type Machine, sentence } from "../../api";
import type { ConnectionRow, KeyRow, RequestRow } from "../../api-types";
import { keyName } from "../../names";
import { to } from "../../route";
import { Time } from "../../time";
import { Badge, Cut } from "../../ui";
import { failureText } from "../requests/outcome";

// Failures lists the latest requests that failed or were refused, in words: what happened, then the model, the
// key and the time. Each links to its details.
export function Failures({
  machine,
  rows,
  conns,
  keys,
}: {
  machine: Machine;
  rows: RequestRow[];
  conns: ConnectionRow[];
  keys: KeyRow[];
}) {
  if (rows.length === 0) return <p class="muted">No failed or refused requests.</p>;
  return (
    <ul class="plain small">
      {rows.map((r) => {
        const key = keys.find((k) => k.id === r.keyId);
        return (
          <li key={r.seq}>
            <p>
              {r.outcome === "refused" ? <Badge kind="warn">Refused</Badge> : <Badge kind="bad">Failed</Badge>}{" "}
              <Why r={r} conns={conns} />
            </p>
            <p class="row tight muted">
              <a href={to(machine.id, "requests", r.id)}>
                <Cut>{r.asked || r.endpoint}</Cut>
              </a>
              {key && <Cut>{keyName(key)}</Cut>}
              <span class="when">
                <Time at={r.at} />
              </span>
            </p>
          </li>
        );
      })}
    </ul>
  );
}

// Why shows why a request failed: the message of a refusal, or what the last account did.
function Why({ r, conns }: { r: RequestRow; conns: ConnectionRow[] }) {
  if (r.message) return <bdi>{sentence(r.message.replace(/ Try again in [^.]*\.$/, ""))}</bdi>; // it is over
  const last = r.failed?.at(-1);
  const account = conns.find((c) => c.id === (last?.connectionId ?? r.connectionId));
  if (last?.text?.startsWith("The provider of ")) return <bdi>{last.text}</bdi>; // names the account and the cause
  const said = last?.text?.match(/Provider said: (.+)/s)?.[1];
  return (
    <>
      <Cut>{account ? account.name || account.provider : (last?.provider ?? r.provider ?? "The provider")}</Cut>{" "}
      {failureText(last?.status ?? r.status, last?.code ?? r.error)}
      {said && (
        <>
          : <bdi>{said}</bdi>
        </>
      )}
      .
    </>
  );
}
