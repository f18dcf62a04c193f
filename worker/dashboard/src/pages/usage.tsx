import { useMemo } from "preact/hooks";
import { download } from "../download";
import { count } from "../format";
import { useLoad } from "../hooks";
import { Lazy } from "../lazy";
import { useNames } from "../names";
import type { PageProps } from "../page";
import { useFilter } from "../route";
import { Tabs } from "../forms";
import { Load, Page, Section, Table } from "../layout";
import { Button, Empty, Field } from "../ui";
import type { Line } from "./usage/chart";
import { columns, type Metric, metrics, textOf, type UsageRow, unpricedAttempts, amount } from "./usage/columns";
import { csv } from "./usage/csv";
import {
  dayMs,
  type Group,
  groupRows,
  groups,
  type NameOf,
  nameOf,
  type Report,
  startOf,
  timesOf,
  utcDay,
  whenOf,
} from "./usage/report";

const maxLines = 6; // of the chart
const loadChart = () => import("./usage/chart");

// Usage shows how much the machine was used, by day or hour and group.
export default function Usage({ machine }: PageProps) {
  const [period, setPeriod] = useFilter("days", "7", ["24h", "1", "7", "30", "90"]);
  const [group, setGroup] = useFilter<Group>(
    "by",
    "",
    groups.map(([k]) => k),
  );
  const ids = metrics.map((m) => m.metric.id);
  const [metricId, setMetricId] = useFilter("show", ids[0], ids);
  const usage = useLoad(async (): Promise<Report> => {
    const by = group && `,${group}`;
    const now = Date.now(),
      days = Number(period);
    const query = days
      ? `from=${utcDay(now - (days - 1) * dayMs)}&to=${utcDay(now)}&groupBy=day`
      : `period=${period}&groupBy=hour`;
    return { ...(await machine.get<Report>(`/usage?${query}${by}`)), by: group };
  }, [machine, period, group]);
  const names = useNames(machine).data;
  const name: NameOf = (r) => nameOf(r, usage.data?.by ?? "", names);
  const actions = (
    <Button disabled={!usage.data} onClick={() => usage.data && save(usage.data, name)}>
      Export CSV
    </Button>
  );
  return (
    <Page
      title="Usage"
      intro="Days and hours are in UTC. Usage is stored for 90 days, by hour for 8 days."
      actions={actions}
    >
      <div class="row wrap end filters">
        <Tabs
          label="Period"
          value={period}
          items={[
            ["24h", "24 hours"],
            ["1", "Today"],
            ["7", "7 days"],
            ["30", "30 days"],
            ["90", "90 days"],
          ]}
          onPick={setPeriod}
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
      <Load of={usage} what="usage" rows={4}>
        {(u) =>
          u.data.length === 0 ? (
            <Empty title="No usage in this period">
              <p>Requests appear here within seconds.</p>
            </Empty>
          ) : (
            <Shown
              u={u}
              name={name}
              names={names}
              metric={metrics.find((m) => m.metric.id === metricId) ?? metrics[0]}
              onMetric={setMetricId}
            />
          )
        }
      </Load>
    </Page>
  );
}

function Shown({
  u,
  name,
  names,
  metric,
  onMetric,
}: {
  u: Report;
  name: NameOf;
  /** changes when name returns other names */
  names: unknown;
  metric: Metric;
  onMetric: (id: string) => void;
}) {
  const times = useMemo(() => timesOf(u), [u]);
  const rows = useMemo(
    () =>
      groupRows(u, name).sort((a, b) => amount(metric, b.sum) - amount(metric, a.sum) || a.name.localeCompare(b.name)),
    [u, metric, names],
  );
  const lines = useMemo<Line[]>(
    () =>
      rows.slice(0, maxLines).map((g) => ({
        name: g.name,
        values: times.map((at) => amount(metric, g.times.get(at) ?? {})),
      })),
    [rows, times],
  );
  const unpriced = unpricedAttempts(u.total);
  const unit = u.from.includes("T") ? "hour" : "day";
  const title = `${metric.metric.name} per ${unit}`;
  return (
    <>
      <dl class="tilerow">
        {metrics.map((m) => (
          <div key={m.metric.id} class="stat">
            <dt>{m.metric.name}</dt>
            <dd>{textOf(m, u.total)}</dd>
          </div>
        ))}
      </dl>
      <Section
        title={title}
        actions={
          <Tabs
            label="Metric"
            value={metric.metric.id}
            items={metrics.map((m) => [m.metric.id, m.metric.name])}
            onPick={onMetric}
          />
        }
      >
        <Lazy
          load={loadChart}
          what="chart"
          props={{
            times: times.map((at) => ({ name: at, ms: startOf(at) })),
            hours: unit === "hour",
            lines,
            format: metric.text,
            whole: !metric.decimals,
            label: `${title}, ${u.from} to ${u.to}. The table below has the numbers.`,
          }}
        />
        {rows.length > maxLines && (
          <p class="muted small">
            The chart shows the top {maxLines} of {rows.length}. The table shows all.
          </p>
        )}
        <details>
          <summary>Show as table</summary>
          <Table label={`${title}, as a table`}>
            <thead>
              <tr>
                <th>{unit === "hour" ? "Hour" : "Day"}</th>
                {lines.map((l) => (
                  <th key={l.name} class="num">
                    {l.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((at, i) => (
                <tr key={at}>
                  <th scope="row">{at}</th>
                  {lines.map((l) => (
                    <td key={l.name} class="num">
                      {metric.text(l.values[i] ?? 0)}
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
            <th>{groups.find(([k]) => k === u.by && k !== "")?.[1] ?? "All"}</th>
            {columns.map(
              (c) =>
                c.head && (
                  <th key={c.head} class="num">
                    {c.head}
                  </th>
                ),
            )}
          </tr>
        </thead>
        <tbody>
          {u.by !== "" && rows.map((g) => <TableRow key={g.name} name={g.name} r={g.sum} />)}
          <TableRow name="Total" r={u.total} />
        </tbody>
      </Table>
      <p class="muted small">
        A request counts once and is failed if the client received an error. It may take several attempts with
        providers. Token counts come from the providers.
        {unpriced > 0 &&
          ` ${count(unpriced, "attempt")} ${unpriced === 1 ? "has no known price and is" : "have no known price and are"} not in the total.`}
      </p>
    </>
  );
}

function TableRow({ name, r }: { name: string; r: UsageRow }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {columns.map(
        (c) =>
          c.head && (
            <td key={c.head} class="num">
              {textOf(c, r)}
            </td>
          ),
      )}
    </tr>
  );
}

function save(u: Report, name: NameOf) {
  const saved = columns.filter((c) => c.csv);
  const head = [u.from.includes("T") ? "hour" : "day", u.by || "all", ...saved.map((c) => c.csv ?? "")];
  const rows = u.data.map((r) => [whenOf(r), name(r), ...saved.map((c) => amount(c, r))]);
  download(`usage-${u.from}-${u.to}${u.by && `-${u.by}`}.csv`, "text/csv;charset=utf-8", csv(head, rows));
}
