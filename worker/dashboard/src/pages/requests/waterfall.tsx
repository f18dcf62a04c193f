import type { RequestRow } from "../../api-types";
import { providerName } from "../../connections";
import { number } from "../../format";
import { type Phase, phasesOf } from "./phases";
import { statusText } from "./outcome";
import "./waterfall.css";

// Waterfall shows where the time of a request went: a row for each part, with a bar at its
// place. The bars say nothing that the columns do not.
export function Waterfall({ r, connectionName }: { r: RequestRow; connectionName: (id?: string) => string }) {
  const phases = phasesOf(r);
  if (phases.length === 0) return null;
  const end = Math.max(r.latencyMs, 1);
  return (
    <section aria-label="Timing" class="stack">
      <h3>Timing</h3>
      <table class="waterfall">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col" class="bar" aria-hidden="true" />
            <th scope="col" class="num">
              Start
            </th>
            <th scope="col" class="num">
              Duration
            </th>
          </tr>
        </thead>
        <tbody>
          {phases.map((p) => (
            <tr key={`${p.kind}${p.from}${p.attempt ?? ""}`}>
              <th scope="row">{nameOf(p, r, connectionName)}</th>
              <td class="bar" aria-hidden="true">
                <svg viewBox={`0 0 ${end} 10`} preserveAspectRatio="none">
                  <rect class={p.kind} x={p.from} y={0} width={Math.max(p.to - p.from, end / 200)} height={10} />
                </svg>
              </td>
              <td class="num">{number(p.from)} ms</td>
              <td class="num">{number(p.to - p.from)} ms</td>
            </tr>
          ))}
          <tr class="sum">
            <th scope="row">Total</th>
            <td class="bar" aria-hidden="true" />
            <td class="num" />
            <td class="num">{number(r.latencyMs)} ms</td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}

// nameOf returns the name of a part.
function nameOf(p: Phase, r: RequestRow, connectionName: (id?: string) => string) {
  const failed = p.attempt !== undefined ? r.failed?.[p.attempt - 1] : undefined;
  const account = failed
    ? connectionName(failed.connectionId) || providerName(failed.provider, [])
    : connectionName(r.connectionId) || providerName(r.provider ?? "", []);
  switch (p.kind) {
    case "weir":
      return p.from > 0 ? "weir, after the last attempt" : "weir";
    case "wait":
      return "Wait before the next attempt";
    case "failed":
      return (
        <>
          <bdi>{account}</bdi>: {statusText(failed!.status, failed!.code)}
        </>
      );
    case "first":
      return (
        <>
          <bdi>{account}</bdi>: first token
        </>
      );
    case "answer":
      return (
        <>
          <bdi>{account}</bdi>: {r.firstMs === undefined ? "answer" : "rest of the stream"}
        </>
      );
  }
}
