// The bars of what weir's own attempts found, as on status pages.
import { useState } from "preact/hooks";
import type { Machine } from "./api";
import type { Timeline, Timelines, TimelineStep } from "./api-types";
import { clock, count, latency, monthDay, number, percent } from "./format";
import { Tabs } from "./tabs";
import { useLoad } from "./hooks";
import { Load, Section, Table } from "./layout";
import "./timeline.css";

type Span = "24h" | "30d";

const states = { operational: "Operational", degraded: "Degraded", down: "Down" };

// heights are those of the bars, so that a state is known without its color.
const heights = { operational: 16, degraded: 12, down: 8 };

// moment returns the time of a step: an hour in the browser's time zone, or a day of UTC.
const moment = (span: Span, at: number) => (span === "30d" ? monthDay(at, "UTC") : `${monthDay(at)}, ${clock(at)}`);

const milliseconds = (ms?: number) => (ms ? latency(ms) : "");

const causes: Record<string, string> = {
  limited: "rate limited",
  key_refused: "key refused",
  out_of_credit: "out of credit",
  timeout: "timed out",
  unreachable: "unreachable",
  blocked: "region blocked",
};

// counted are the causes that are things, which have a plural.
const counted: Record<string, string> = { server_error: "server error", refused: "bad request" };

// failures says why attempts failed: "2 rate limited, 1 timed out".
const failures = (s: TimelineStep) =>
  Object.entries(s.failedBy ?? {})
    .map(([cause, n]) => (counted[cause] ? count(n, counted[cause]) : `${number(n)} ${causes[cause] ?? cause}`))
    .join(", ");

// found says what the attempts of a time found: "98 of 100 attempts succeeded (98%)".
const found = (s: TimelineStep) =>
  `${number(s.attempts - s.failed)} of ${count(s.attempts, "attempt")} succeeded${s.state ? ` (${percent(s.success)})` : ""}`;

// answered reports whether an attempt succeeded; without one there is no latency to speak of.
const answered = (s: TimelineStep) => s.attempts > s.failed;

const details = (s: TimelineStep) =>
  [
    found(s),
    failures(s),
    s.latencyP50Ms && answered(s) && `latency ${milliseconds(s.latencyP50Ms)}, p95 ${milliseconds(s.latencyP95Ms)}`,
    s.firstTokenP50Ms && `first token ${milliseconds(s.firstTokenP50Ms)}`,
  ]
    .filter(Boolean)
    .join("; ");

// stepsOf returns every step of a span, those without attempts as null.
const stepsOf = (all: Timelines, line?: Timeline) =>
  Array.from({ length: all.steps }, (_, i) => {
    const at = all.from + i * all.stepMs;
    return { at, step: line?.steps.find((s) => s.at === at) ?? null };
  });

// Strip is the line of an account or a model: a bar for each step. Screen readers have its
// sum as text.
export function Strip({ all, line, label }: { all: Timelines; line?: Timeline; label: string }) {
  const steps = stepsOf(all, line);
  const bad = (state: keyof typeof states) => steps.filter((s) => s.step?.state === state).length;
  const unit = all.span === "30d" ? "day" : "hour";
  const sum = line
    ? [found(line.total), ...(["degraded", "down"] as const).map((s) => bad(s) > 0 && `${count(bad(s), unit)} ${s}`)]
        .filter(Boolean)
        .join(", ")
    : "no requests";
  return (
    <svg
      class="strip"
      role="img"
      aria-label={`${label}, last ${count(all.steps, unit)}: ${sum}`}
      viewBox={`0 0 ${all.steps} 16`}
      preserveAspectRatio="none"
    >
      {steps.map(({ at, step }, i) => {
        const height = step?.state ? heights[step.state] : 1.5;
        return (
          <g key={at}>
            <title>
              {moment(all.span, at)}: {step?.state && `${states[step.state]}. `}
              {step ? details(step) : "No requests"}
            </title>
            <rect class="slot" x={i} y={0} width={1} height={16} />
            <rect class={step?.state ?? "none"} x={i + 0.1} y={16 - height} width={0.8} height={height} />
          </g>
        );
      })}
    </svg>
  );
}

// Health is the section with the time line of an account or a model.
export function Health({ machine, filter, what }: { machine: Machine; filter: string; what: string }) {
  const [span, setSpan] = useState<Span>("24h");
  const loaded = useLoad(
    () => machine.get<Timelines>(`/health/timeline?span=${span}&${filter}`),
    [machine, filter, span],
  );
  return (
    <Section
      title="Health"
      intro="Results of this machine’s own requests."
      actions={
        <Tabs<Span>
          label="Time"
          value={span}
          items={[
            ["24h", "24 hours"],
            ["30d", "30 days"],
          ]}
          onPick={setSpan}
        />
      }
    >
      <Load of={loaded} what="health" rows={1}>
        {(all) => <Shown all={all} line={all.data[0]} what={what} />}
      </Load>
    </Section>
  );
}

function Shown({ all, line, what }: { all: Timelines; line?: Timeline; what: string }) {
  if (!line) return <p>No requests.</p>;
  const steps = stepsOf(all, line).filter((s) => s.step);
  return (
    <>
      <div>
        <Strip all={all} line={line} label={what} />
        <p class="row between small muted" aria-hidden="true">
          <span>{moment(all.span, all.from)}</span>
          <span>Now</span>
        </p>
      </div>
      <p>{details(line.total)}</p>
      {steps.length > 0 && (
        <details>
          <summary>As a table</summary>
          <Table label={`Health of ${what}`} stacked>
            <thead>
              <tr>
                <th scope="col">{all.span === "30d" ? "Day" : "Hour"}</th>
                <th scope="col">State</th>
                <th scope="col" class="num">
                  Attempts
                </th>
                <th scope="col" class="num">
                  Failed
                </th>
                <th scope="col" class="num">
                  Latency
                </th>
                <th scope="col" class="num">
                  p95
                </th>
                <th scope="col" class="num">
                  First token
                </th>
              </tr>
            </thead>
            <tbody>
              {steps.toReversed().map(({ at, step }) => (
                <tr key={at}>
                  <th scope="row">{moment(all.span, at)}</th>
                  <td>{step!.state && states[step!.state]}</td>
                  <td class="num" data-label="Attempts">
                    {number(step!.attempts)}
                  </td>
                  <td class="num" data-label="Failed">
                    {number(step!.failed)}
                    {step!.failedBy && <small class="muted"> {failures(step!)}</small>}
                  </td>
                  <td class="num" data-label="Latency">
                    {answered(step!) && milliseconds(step!.latencyP50Ms)}
                  </td>
                  <td class="num" data-label="p95">
                    {answered(step!) && milliseconds(step!.latencyP95Ms)}
                  </td>
                  <td class="num" data-label="First token">
                    {milliseconds(step!.firstTokenP50Ms)}
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
        </details>
      )}
    </>
  );
}
