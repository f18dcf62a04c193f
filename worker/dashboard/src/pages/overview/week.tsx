import type { Machine } from "../../api";
import { dollars, lowerBound, type Write } from "../../amounts";
import { compact, day, weekday } from "../../format";
import { Section } from "../../layout";
import { to } from "../../route";
import { outcomes } from "../usage/outcomes";
import { Bars, type Counts, failed, type Series } from "./figures";
import "../../legend.css";

const wholeFrom = 100; // dollars of a day, which are shown without cents

const [succeeded, ...others] = outcomes;

const rows: { name: string; metric: string; value: (c: Counts) => number | undefined }[] = [
  { name: "Requests", metric: "requests", value: (c) => c.requests ?? 0 },
  { name: "Failed", metric: "success", value: failed },
  { name: "Spend", metric: "cost", value: (c) => (c.unpricedAttempts && !c.costUsd ? undefined : (c.costUsd ?? 0)) },
];

// Week shows the last seven days: what was asked, what failed and what it cost. The bars are the
// requests by their outcome, in the colors of the page Usage, so that all have one scale.
export function Week({ machine, series: { steps, total } }: { machine: Machine; series: Series }) {
  const most = Math.max(...steps.map(({ row }) => row.requests ?? 0));
  const partsOf = (row: Counts) => others.map(({ name, color, value }) => ({ name, color, n: value({ ...row }) }));
  const found = partsOf(total).filter(({ n }) => n > 0);
  const text = (metric: string, row: Counts, n?: number) => {
    if (n === undefined) return "–";
    if (metric !== "cost") return compact(n);
    // Seven columns have room for cents.
    const digits = n < wholeFrom ? 2 : 0;
    const write: Write = (usd, down) =>
      usd > 0 && usd < 0.005 && !down ? "<$0.01" : dollars(usd, digits, digits, down);
    return lowerBound(write, n, row.unpricedAttempts);
  };
  return (
    <Section title="Last 7 days" actions={<a href={`${to(machine.id, "usage")}?range=7d`}>Usage</a>}>
      <table class="week" aria-label="Last 7 days">
        <thead>
          <tr>
            <td />
            {steps.map(({ at }) => (
              <th key={at} scope="col" title={`${day(at)} UTC`}>
                {weekday(at)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, metric, value }) => (
            <tr key={metric}>
              <th scope="row">
                <a href={`${to(machine.id, "usage")}?range=7d&show=${metric}`}>{name}</a>
              </th>
              {steps.map(({ at, row }) => {
                const n = value(row);
                return (
                  <td key={at} class={metric === "success" ? (n ? "bad" : "muted") : ""}>
                    {metric === "requests" && <Bars values={[{ n, parts: partsOf(row), title: "" }]} most={most} />}
                    {text(metric, row, n)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {found.length > 0 && (
        <ul class="legend">
          {[succeeded, ...found].map(({ name, color }) => (
            <li key={name}>
              <span class={`swatch ${color}`} aria-hidden="true" />
              {name}
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
