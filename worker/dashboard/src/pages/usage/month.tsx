import type { Machine } from "../../api";
import { now } from "../../clock";
import { Copy } from "../../code";
import { moneyLike } from "../../amounts";
import { month as monthName, number } from "../../format";
import { useLoad } from "../../hooks";
import { Load, Section, Table } from "../../layout";
import { tooltipOf } from "../../named";
import { useNames } from "../../lookup";
import { useFilter } from "../../route";
import { Cut } from "../../ui";
import { columns, figure, textOf, type UsageRow } from "./columns";
import { type Group, groupName, groupRows, type Ids, namedId, nameOf, type Report } from "./report";
import { monthOf, months, startOf, utcDay } from "./span";

const spend = columns.find((c) => c.field === "costUsd")!;
const storedMonths = 13;
const stored = () => months(now(), storedMonths);

// useMonth returns the month that is picked, which the address has.
export const useMonth = () => useFilter("month", "", ["", ...stored()]);

// monthQuery returns the query of GET /api/usage for a month.
export function monthQuery(month: string, group: Group, ids: Ids): string {
  const wanted = new URLSearchParams(ids).toString();
  return (
    `from=${month}-01&to=${utcDay(monthOf(startOf(month), 1) - 1)}&groupBy=month` +
    `${group && `,${group}`}${wanted && `&${wanted}`}`
  );
}

// MonthTotal is what each group has used in a month, as a table to copy into an invoice.
export function MonthTotal({
  machine,
  group,
  ids,
  picked: [month, setMonth],
}: {
  machine: Machine;
  group: Group;
  ids: Ids;
  picked: [month: string, set: (month: string) => void];
}) {
  return (
    <Section
      title="Month’s total"
      intro="In UTC, with the group and filters above."
      actions={
        <select class="narrow" aria-label="Month" value={month} onChange={(e) => setMonth(e.currentTarget.value)}>
          <option value="">Choose a month</option>
          {stored().map((m) => (
            <option key={m} value={m}>
              {monthName(startOf(m))}
            </option>
          ))}
        </select>
      }
    >
      {month && <Total machine={machine} month={month} group={group} ids={ids} />}
    </Section>
  );
}

function Total({ machine, month, group, ids }: { machine: Machine; month: string; group: Group; ids: Ids }) {
  const query = monthQuery(month, group, ids);
  const total = useLoad(() => machine.get<Report>(`/usage?${query}`), [machine, query]);
  const names = useNames(machine, total.data?.data.map((r) => namedId(r, group)) ?? []);
  const name = (id: string) => nameOf(id, group, names);
  return (
    <Load of={total} what="usage" rows={2}>
      {(u) => {
        const rows = [
          ...(group ? groupRows(u, group) : [])
            .sort((a, b) => figure(b.sum, "costUsd") - figure(a.sum, "costUsd") || name(a.id).localeCompare(name(b.id)))
            .map((g) => ({ id: g.id, name: name(g.id), of: g.sum })),
          { id: "", name: "Total", of: u.total },
        ];
        const cost = moneyLike(rows.map((r) => figure(r.of, "costUsd")));
        return (
          <>
            <Table label="Total of the month">
              <thead>
                <tr>
                  <th>Month</th>
                  <th>{group ? groupName(group) : "All"}</th>
                  <th class="num">Requests</th>
                  <th class="num">Tokens</th>
                  <th class="num">Cost</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((r, i) => (
                  <tr key={i}>
                    <td>{month}</td>
                    <th scope="row">
                      <Cut title={tooltipOf(r.name, r.id)}>{r.name}</Cut>
                    </th>
                    <td class="num">{number(figure(r.of, "requests"))}</td>
                    <td class="num">{number(tokens(r.of))}</td>
                    <td class="num">{textOf(spend, r.of, cost)}</td>
                  </tr>
                ))}
              </tbody>
            </Table>
            {figure(u.total, "unpricedAttempts") > 0 && (
              <p class="muted small">
                The cost of {number(figure(u.total, "unpricedAttempts"))} attempts is not known and not in these
                amounts.
              </p>
            )}
            <div class="row wrap">
              <Copy text={tableText(month, group, rows)} label="Copy table" />
            </div>
          </>
        );
      }}
    </Load>
  );
}

const tokens = (r: UsageRow) => figure(r, "inputTokens") + figure(r, "outputTokens");

// tableText returns the table as spreadsheets and word processors paste it: tabs between
// columns. A name that a spreadsheet would run as a formula begins with an apostrophe.
export function tableText(month: string, group: Group, rows: { name: string; of: UsageRow }[]): string {
  const plain = (text: string) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll(/[\t\r\n]+/g, " ");
  const lines = rows.map((r) =>
    [month, plain(r.name), figure(r.of, "requests"), tokens(r.of), figure(r.of, "costUsd").toFixed(4)].join("\t"),
  );
  return [
    ["Month", plain(group ? groupName(group) : "All"), "Requests", "Tokens", "Cost (USD)"].join("\t"),
    ...lines,
  ].join("\n");
}
