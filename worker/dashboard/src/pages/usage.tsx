import { now } from "../clock";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { List, RequestRow } from "../api-types";
import { money, moneyLike } from "../amounts";
import { compact, count, inSeconds, milliseconds, month, number, when } from "../format";
import { Tabs } from "../tabs";
import { refreshMs, useLoad, useRefresh } from "../hooks";
import { Fit, Load, Page, Section, Table } from "../layout";
import { Lazy } from "../lazy";
import { Middle } from "../middle";
import { tooltipOf } from "../named";
import { useNames } from "../lookup";
import type { PageProps } from "../page";
import { Popover } from "../popover";
import { to, useFilter } from "../route";
import { Time } from "../time";
import { Button, Cut, Empty, Notice } from "../ui";
import { NoRequests, Views } from "../views";
import type { Line } from "./usage/chart";
import {
  amount,
  change,
  type Column,
  columns,
  figure,
  known,
  type Metric,
  metrics,
  partsOf,
  textOf,
  type UsageRow,
} from "./usage/columns";
import { FilterFields, PeriodFields, useIds, usePeriod } from "./usage/filters";
import { MonthTotal, monthQuery, useMonth } from "./usage/month";
import { approximate } from "./usage/outcomes";
import {
  filterOf,
  type GroupUsage,
  groupName,
  groupRows,
  groupText,
  hasHours,
  type Ids,
  isGroup,
  namedId,
  nameOf,
  type Report,
  timesOf,
  type UnpricedModel,
  unnamedOf,
} from "./usage/report";
import { type Asked, inDays, intervals, type Period, spanOf, startOf, type Unit } from "./usage/span";
import "../figures.css";

const maxLines = 6; // of the chart
const loadChart = () => import("./usage/chart");

// RequestsOf returns the address of the requests that a number is of.
type RequestsOf = (c: Column, ids?: Ids, when?: string) => string;

// Usage shows how much the machine was used, by month, day or hour and group.
export default function Usage({ machine, has }: PageProps) {
  const period = usePeriod();
  const ids = useIds();
  const [by, setGroup] = useFilter("by", "");
  const group = isGroup(by) ? by : "";
  const [compare, setCompare] = useFilter("compare", "", ["", "1"]);
  const picks = useFilter("columns", "");
  const metricIds = metrics.map((m) => m.metric.id);
  const [metricId, setMetricId] = useFilter("show", metricIds[0], metricIds);
  const { range, from, to: last, unit } = period.values;
  const asked: Asked = { range, from, to: last, unit };
  const wanted = new URLSearchParams(ids.values).toString();
  const stored = <T extends Period>(p: T) => (hasHours(group, ids.values) ? p : inDays(p));
  const query = ({ unit, from, to }: Period) =>
    `from=${from}&to=${to}&groupBy=${unit}${group && `,${group}`}${wanted && `&${wanted}`}`;
  const usage = useLoad(async (): Promise<Report> => {
    const span = stored(spanOf(asked, now()));
    const get = async (of: Period) => ({ ...(await machine.get<Report>(`/usage?${query(of)}`)), unit: of.unit });
    const [report, before] = await Promise.all([get(span), compare && span.before ? get(stored(span.before)) : null]);
    const unused =
      has("GET /api/requests") &&
      !report.data.length &&
      !wanted &&
      !(await machine.get<List<RequestRow>>("/requests?limit=1")).data.length;
    return { ...report, by: group, unused, ...(compare ? { before } : {}) };
  }, [machine, range, from, last, unit, group, compare, wanted]);
  useRefresh(usage.reload, usage.error ? refreshMs : 0); // the gateway may be back
  const named = usage.data
    ? [...usage.data.data, ...(usage.data.groups ?? [])].map((r) => namedId(r, usage.data!.by))
    : [];
  const names = useNames(machine, [...named, ids.values.key, ids.values.connection]);
  const picked = useMonth();
  const [ofMonth] = picked;
  const exports = [
    ["This period as CSV", query(stored(spanOf(asked, now())))],
    ...(ofMonth ? [[`${month(startOf(ofMonth))} as CSV`, monthQuery(ofMonth, group, ids.values)]] : []),
  ];
  const actions = (
    <>
      <Button onClick={() => void usage.reload()} busy={usage.loading}>
        Refresh
      </Button>
      <Popover label="Export">
        {() => (
          <ul class="views">
            {exports.map(([name, of]) => (
              <li key={name}>
                <a class="button quiet" href={machine.at(`/usage.csv?${of}`)} download>
                  {name}
                </a>
              </li>
            ))}
          </ul>
        )}
      </Popover>
    </>
  );
  return (
    <Page title="Usage" intro="Days are in UTC. Usage is stored for 13 months, by hour for 8 days." actions={actions}>
      <PeriodFields
        of={period}
        group={group}
        accounts={machine.may("viewer")}
        tags={usage.data?.tagNames ?? []}
        onGroup={setGroup}
      >
        <Views machine={machine} page="usage" />
        <FilterFields
          of={ids}
          names={names}
          period={period}
          span={spanOf(asked, now())}
          compare={[!!compare, (on) => setCompare(on ? "1" : "")]}
        />
      </PeriodFields>
      {!hasHours(group, ids.values) && (
        <p class="muted small">Usage by tool and tag is stored by day, without accounts, models and endpoints.</p>
      )}
      <Load of={usage} what="usage" rows={4}>
        {(u) =>
          u.unused ? (
            <NoRequests machine={machine} />
          ) : u.data.length === 0 ? (
            <Empty title={wanted ? "No usage matches the filters" : "No usage in this period"}>
              <p>Requests appear here within seconds.</p>
            </Empty>
          ) : (
            <Shown
              u={u}
              name={(id) => (id ? nameOf(id, u.by, names) : unnamedOf(u))}
              names={names}
              machineId={machine.id}
              ids={ids.values}
              picks={picks}
              metric={metrics.find((m) => m.metric.id === metricId) ?? metrics[0]}
              onMetric={setMetricId}
              onGroup={(id) => {
                if (u.by) ids.set(filterOf(u.by), id);
                setGroup("");
              }}
            />
          )
        }
      </Load>
      <MonthTotal machine={machine} group={group} ids={ids.values} picked={picked} />
    </Page>
  );
}

interface ShownProps {
  u: Report;
  name: (id: string) => string;
  /** changes when name returns other names */
  names: unknown;
  machineId: string;
  ids: Ids;
  /** the columns of the table that are picked, and what picks others */
  picks: [heads: string, set: (heads: string) => void];
  metric: Metric;
  onMetric: (id: string) => void;
  /** shows one group alone */
  onGroup: (id: string) => void;
}

function Shown({ u, name, names, machineId, ids, picks, metric, onMetric, onGroup }: ShownProps) {
  const [picked, setColumns] = picks;
  const hours = u.unit === "hour";
  const times = useMemo(() => timesOf(u), [u]);
  const rows = useMemo(
    () =>
      groupRows(u, u.by).sort(
        (a, b) => amount(metric, b.sum) - amount(metric, a.sum) || name(a.id).localeCompare(name(b.id)),
      ),
    [u, metric, names],
  );
  const lines = useMemo(() => linesOf(u, rows, times, metric, name), [rows, times]);
  const requests: RequestsOf = (c, of = {}, at) => {
    const first = startOf(at ?? u.from),
      end = at ? intervals[u.unit].next(first) : intervals[hours ? "hour" : "day"].next(startOf(u.to));
    const query = { ...ids, ...of, ...c.of, from: String(first), to: String(end - 1) };
    return `${to(machineId, "requests")}?${new URLSearchParams(query)}`;
  };
  const groupIds = (id: string): Ids => (u.by && id ? { [filterOf(u.by)]: id } : {});
  const title = `${metric.metric.name} per ${u.unit}`;
  const spanText = hours
    ? `${when(startOf(u.from))} to ${when(intervals.hour.next(startOf(u.to)))}`
    : `${u.from} to ${u.to}`;
  const before = u.before ? groupRows(u.before, u.by) : [];
  const heads = columns.filter((c): c is Column & { head: string } => !!c.head);
  const own = picked.split(",").filter((head) => heads.some((c) => c.head === head));
  const shown = heads.filter((c) => (own.length > 0 ? own.includes(c.head) : !c.more));
  const choose = (head: string, on: boolean) => {
    const next = heads.filter((c) => (c.head === head ? on : shown.includes(c))).map((c) => c.head);
    const usual = heads.filter((c) => !c.more).map((c) => c.head);
    setColumns(next.join() === usual.join() ? "" : next.join());
  };
  const spend = moneyLike([...rows.map((g) => g.sum), u.total].map((r) => figure(r, "costUsd")));
  const tile = (m: Metric) => (
    <div key={m.metric.id} class="stat">
      <dt>{m.metric.name}</dt>
      <dd>
        <Figure c={m} r={u.total} at={requests(m)} what={m.metric.name} short />
      </dd>
      {u.before && (
        <dd class="change">
          {change(m, u.total, u.before.total)} from {textOf(m, u.before.total)}
        </dd>
      )}
    </div>
  );
  return (
    <>
      {u.before === null && <Notice>No usage is stored for the previous period.</Notice>}
      <dl class="tilerow main">{metrics.filter((m) => m.main).map(tile)}</dl>
      <details>
        <summary>More figures</summary>
        <dl class="tilerow main">{metrics.filter((m) => !m.main).map(tile)}</dl>
      </details>
      <Unpriced u={u} machineId={machineId} requests={requests} />
      <Section
        title={title}
        actions={
          <>
            <Tabs
              label="Metric"
              value={metric.metric.id}
              items={metrics.filter((m) => m.main || m === metric).map((m) => [m.metric.id, m.metric.name])}
              onPick={onMetric}
            />
            <Popover label="More" name="More metrics">
              {(close) => (
                <ul class="views">
                  {metrics
                    .filter((m) => !m.main && m !== metric)
                    .map(({ metric: { id, name } }) => (
                      <li key={id}>
                        <Button
                          kind="quiet"
                          onClick={() => {
                            close();
                            onMetric(id);
                          }}
                        >
                          {name}
                        </Button>
                      </li>
                    ))}
                </ul>
              )}
            </Popover>
          </>
        }
      >
        <Lazy
          load={loadChart}
          what="chart"
          props={{
            times: times.map((at) => ({ name: timeName(u.unit, at), ms: startOf(at) })),
            unit: u.unit,
            lines,
            bars: !!metric.stacks,
            format: metric.text,
            mark: (n) => shorter(metric)(n).replace(/^[≈≤] /, ""), // no figure that was measured
            whole: !metric.decimals,
            label: `${title}, ${spanText}. The table below has the numbers.`,
          }}
        />
        {rows.length > maxLines && !metric.stacks && (
          <p class="muted small">
            The chart shows the top {maxLines} of {rows.length}. The table shows all.
          </p>
        )}
        <details>
          <summary>Show as table</summary>
          <Table label={`${title}, as a table`}>
            <thead>
              <tr>
                <th>{intervals[u.unit].name}</th>
                {rows.slice(0, maxLines).map((g) => (
                  <th key={g.id} class="num">
                    <Cut title={tooltipOf(name(g.id), g.id)}>{name(g.id)}</Cut>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((at) => (
                <tr key={at}>
                  <th scope="row">{hours ? <Time at={startOf(at)} /> : timeName(u.unit, at)}</th>
                  {rows.slice(0, maxLines).map((g) => (
                    <td key={g.id} class="num">
                      <Figure c={metric} r={g.times.get(at) ?? {}} at={requests(metric, groupIds(g.id), at)} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </Table>
        </details>
      </Section>
      <div class="row between">
        <h2>{u.by ? `Usage by ${groupText(u.by)}` : "Total"}</h2>
        <Popover label={`Columns (${shown.length} of ${heads.length})`}>
          {() => (
            <fieldset class="stack">
              <legend class="hidden">Columns</legend>
              {heads.map((c) => (
                <label class="row tight" key={c.head}>
                  <input
                    type="checkbox"
                    checked={shown.includes(c)}
                    disabled={shown.length === 1 && shown[0] === c}
                    onChange={(e) => choose(c.head, e.currentTarget.checked)}
                  />
                  {c.head}
                </label>
              ))}
            </fieldset>
          )}
        </Popover>
      </div>
      <Table label="Usage">
        <thead>
          <tr>
            <th>{u.by === "" ? "All" : groupName(u.by)}</th>
            {shown.map((c) => (
              <th key={c.head} class="num">
                {c.head}
              </th>
            ))}
            {u.before && <th class="num">{metric.metric.name}, change</th>}
          </tr>
        </thead>
        <tbody>
          {u.by !== "" &&
            rows.map((g) => (
              <TableRow
                key={g.id}
                name={
                  g.id ? (
                    <Button kind="link" onClick={() => onGroup(g.id)}>
                      {u.by === "model" ? (
                        <Middle>{g.id}</Middle>
                      ) : (
                        <Cut title={tooltipOf(name(g.id), g.id)}>{name(g.id)}</Cut>
                      )}
                    </Button>
                  ) : (
                    name(g.id)
                  )
                }
                r={g.sum}
                shown={shown}
                spend={spend}
                at={(c) => requests(c, groupIds(g.id))}
                change={u.before && (change(metric, g.sum, before.find((b) => b.id === g.id)?.sum ?? {}) || "–")}
              />
            ))}
          <TableRow
            name="Total"
            r={u.total}
            shown={shown}
            spend={spend}
            at={(c) => requests(c)}
            change={u.before && (change(metric, u.total, u.before.total) || "–")}
          />
        </tbody>
      </Table>
      <p class="muted small">
        A request counts once, by its outcome, and may take several attempts with providers. Success rate and latency
        leave out what the gateway refused. A request for which no account could be tried lowers the success rate and
        has no latency; percentiles of it (≈) are accurate to a fifth.{" "}
        {estimatedText(figure(u.total, "estimatedAttempts"))}
        {figure(u.total, "left") > 0 &&
          `${count(figure(u.total, "left"), "answer")} ${figure(u.total, "left") === 1 ? "was" : "were"} cut off by the client. `}
        Tests of accounts count in attempts, tokens and cost, without a request and a key. Numbers link to the requests
        that are stored.
      </p>
    </>
  );
}

// timeName returns a month, a day or an hour as text.
const timeName = (unit: Unit, at: string) =>
  unit === "hour" ? when(startOf(at)) : unit === "month" ? month(startOf(at)) : at;

// estimatedText says where the counts of tokens come from.
const estimatedText = (n: number) =>
  n === 0
    ? "Token counts come from the providers. "
    : `Token counts come from the providers, but of ${count(n, "attempt")} (≈) they are estimated. `;

// linesOf returns what the chart draws: the groups with the most, and for sums the
// others together. A metric with parts is drawn by them if there is no group.
function linesOf(u: Report, rows: GroupUsage[], times: string[], metric: Metric, name: (id: string) => string): Line[] {
  const of = (g: GroupUsage, value: (r: UsageRow) => number | null) => times.map((at) => value(g.times.get(at) ?? {}));
  const plain = (r: UsageRow) => amount(metric, r);
  let lines: Line[];
  if (u.by === "" && metric.parts && rows.length > 0)
    lines = partsOf(metric)
      .map(({ name, color, value }) => ({ name, color, values: of(rows[0], value) }))
      .filter((line, i) => i === 0 || line.values.some((n) => n !== 0));
  else {
    lines = rows.slice(0, maxLines).map((g) => ({ name: name(g.id), values: of(g, (r) => known(metric, r)) }));
    const rest = rows.slice(maxLines).map((g) => of(g, plain));
    if (metric.stacks && rest.length > 0)
      lines.push({
        name: `Other (${rest.length})`,
        color: "rest",
        values: times.map((_, i) => rest.reduce((sum, values) => sum + (values[i] ?? 0), 0)),
      });
  }
  // The previous period of the same length in the same unit; of groups only sums add up.
  if (u.before && u.before.unit === u.unit && (metric.stacks || u.by === "")) {
    const earlier = groupRows(u.before, u.by);
    const values = timesOf(u.before).map((at) => earlier.reduce((sum, g) => sum + plain(g.times.get(at) ?? {}), 0));
    lines.push({ name: "Previous period", color: "rest", dashed: true, values: times.map((_, i) => values[i] ?? 0) });
  }
  return lines;
}

// shorter returns what writes the values of a column where there is little room.
const shorter = (c: Column) => (c.text === number ? compact : c.text === milliseconds ? inSeconds : c.text);

// Figure is a number that leads to its requests.
function Figure({
  c,
  r,
  at,
  what,
  short,
  spend,
}: {
  c: Column;
  r: UsageRow;
  at: string;
  what?: string;
  /** large numbers and times are shortened */
  short?: boolean;
  /** writes the amounts of its column */
  spend?: (usd: number) => string;
}) {
  const text = textOf(c, r);
  if (text === "–" || amount(c, r) === 0) return <>{text}</>;
  const written = textOf(c, r, short ? shorter(c) : spend && c.text === money ? spend : c.text);
  const marked = approximate(c.metric?.id ?? c.field, written, figure(r, "estimatedAttempts"));
  return (
    <a
      class="plain"
      href={at}
      title={marked !== written ? `${text}, partly estimated` : written === text ? undefined : text}
      aria-label={what && `${what}: ${written}${written === text ? "" : ` (${text})`}`}
    >
      {short ? <Fit>{marked}</Fit> : marked}
    </a>
  );
}

function TableRow({
  name,
  r,
  shown,
  spend,
  at,
  change,
}: {
  name: ComponentChildren;
  r: UsageRow;
  shown: Column[];
  spend: (usd: number) => string;
  at: (c: Column) => string;
  change?: string | null;
}) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {shown.map((c) => (
        <td key={c.head} class="num">
          <Figure c={c} r={r} at={at(c)} spend={spend} />
        </td>
      ))}
      {change && <td class="num">{change}</td>}
    </tr>
  );
}

// Unpriced names the models whose cost is not in the total.
function Unpriced({ u, machineId, requests }: { u: Report; machineId: string; requests: RequestsOf }) {
  const cost = columns.find((c) => c.field === "costUsd")!;
  const list = (models: UnpricedModel[]) =>
    models.map((m, i) => (
      <span key={`${m.provider}/${m.model}`}>
        {i > 0 && ", "}
        <a href={requests(cost, m.model ? { model: m.model } : {})}>
          <Middle>{m.model || "unknown model"}</Middle>
        </a>{" "}
        ({m.attempts})
      </span>
    ));
  const [without, partly] = [false, true].map((priced) => (u.unpriced ?? []).filter((m) => !!m.priced === priced));
  return (
    <>
      {without.length > 0 && (
        <Notice kind="warn">
          {count(sumOf(without), "attempt")} had no known price when made and {sumOf(without) === 1 ? "is" : "are"} not
          in the cost: {list(without)}. <a href={`${to(machineId, "models")}?view=prices`}>Set prices</a> for later
          ones.
        </Notice>
      )}
      {partly.length > 0 && (
        <Notice>
          {count(sumOf(partly), "attempt")} {sumOf(partly) === 1 ? "is" : "are"} not in the cost, because the price was
          set later or something else, such as a tool, had none: {list(partly)}.
        </Notice>
      )}
    </>
  );
}

const sumOf = (models: UnpricedModel[]) => models.reduce((sum, m) => sum + m.attempts, 0);
