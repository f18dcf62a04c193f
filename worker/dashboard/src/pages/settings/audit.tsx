import { useEffect, useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { AuditRow, List } from "../../api-types";
import { now } from "../../clock";
import { Choice, Search } from "../../forms";
import { useAction, useLoad, useSettled } from "../../hooks";
import { Load, Section, Table } from "../../layout";
import { useFilter } from "../../route";
import { Time } from "../../time";
import { Badge, Button, Cut, Empty, ErrorBox } from "../../ui";
import { actionText, actors, actorText, fieldText, kinds, targetText } from "./words";
import "./audit.css";

// AuditPage is a page of GET /api/audit.
interface AuditPage extends List<AuditRow> {
  has_more: boolean;
  /** the value of before for the next page */
  next?: number;
  /** of keys, accounts, combos and budgets, by their ids in the rows */
  names: Record<string, string>;
  /** of people, by their ids */
  people?: Record<string, string>;
  /** with verify: whether the hash chain is intact */
  chain?: { ok: boolean; brokenAt?: number };
}

const perPage = 25;
const maxReads = 20; // of the gateway, until something matches
const dayMs = 86_400_000;

// periods are the choices of the filter, in days.
const periods: [days: string, name: string][] = [
  ["", "All"],
  ["1", "24 hours"],
  ["7", "7 days"],
  ["30", "30 days"],
];

// Audit is the log of all changes: who changed what and when, without values.
export function Audit({ machine }: { machine: Machine }) {
  const [text, setText] = useFilter("q", "");
  const [kind, setKind] = useFilter("kind", "");
  const [actor, setActor] = useFilter(
    "by",
    "",
    actors.map(([k]) => k),
  );
  const [days, setDays] = useFilter(
    "days",
    "",
    periods.map(([k]) => k),
  );
  const q = useSettled(text.trim(), 250);
  const filtered = !!(q || kind || actor || days);
  const query = (more: Record<string, string>) => {
    const asked: Record<string, string> = { limit: String(perPage), ...more };
    if (q) asked.q = q;
    if (kind) asked.kind = kind;
    if (actor) asked.actor = actor;
    if (days) asked.from = String(now() - Number(days) * dayMs);
    return `/audit?${new URLSearchParams(asked)}`;
  };
  const chain = useLoad(async () => (await machine.get<AuditPage>("/audit?limit=1&verify=true")).chain, [machine]);
  // read returns the next page with a match; the gateway looks at some thousand entries at a time.
  const read = async (before?: number): Promise<AuditPage> => {
    const pages: AuditPage[] = [];
    do {
      const page = await machine.get<AuditPage>(query(before ? { before: String(before) } : {}));
      pages.push(page);
      before = page.next;
    } while (pages.at(-1)!.data.length === 0 && before && pages.length < maxReads);
    return pages.at(-1)!;
  };
  const list = useLoad(() => read(), [machine, q, kind, actor, days]);
  const [older, setOlder] = useState<AuditPage[]>([]);
  useEffect(() => setOlder([]), [machine, q, kind, actor, days]);
  const act = useAction();
  const load = (before: number) =>
    act.run(async () => {
      const page = await read(before);
      setOlder((all) => [...all, page]);
    });
  return (
    <Section
      title="Audit log"
      intro="Who changed what on this machine. Sign-ins of people and of the operator, and sessions that were ended, are on the operator’s page Sign-in."
    >
      <div class="row wrap end">
        <Search label="Search names" value={text} onInput={setText} />
        <Choice label="Kind" value={kind} options={kinds} onPick={setKind} />
        <Choice label="User" value={actor} options={actors} onPick={setActor} />
        <Choice label="Period" value={days} options={periods} onPick={setDays} />
      </div>
      <Load of={chain} what="audit log" rows={1}>
        {(of) =>
          of &&
          (of.ok ? (
            <Badge kind="good">Digests match</Badge>
          ) : (
            <Badge kind="bad">Damaged or altered at entry {of.brokenAt}</Badge>
          ))
        }
      </Load>
      <Load of={list} what="audit log" rows={2}>
        {(first) => {
          const pages = [first, ...older],
            last = pages[pages.length - 1];
          const all = pages.flatMap((p) => p.data);
          const names = Object.assign({}, ...pages.flatMap((p) => [p.names, p.people])) as Record<string, string>;
          const next = last.next ?? last.data[last.data.length - 1]?.seq;
          return (
            <>
              {all.length > 0 && <Changes rows={all} names={names} />}
              {all.length === 0 && !last.has_more && (
                <Empty title={filtered ? "No changes match the filters" : "No changes yet"} />
              )}
              {all.length === 0 && last.has_more && <p class="muted">No match among the latest changes.</p>}
              {last.has_more && next && (
                <Button busy={act.busy} onClick={() => void load(next)}>
                  Load more
                </Button>
              )}
              {act.error && <ErrorBox>{act.error}</ErrorBox>}
            </>
          );
        }}
      </Load>
    </Section>
  );
}

function Changes({ rows, names }: { rows: AuditRow[]; names: Record<string, string> }) {
  return (
    <Table label="Changes" stacked>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">User</th>
          <th scope="col">Change</th>
          <th scope="col">Fields</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((e) => (
          <tr key={e.seq} class="entry">
            <td class="when">
              <Time at={e.at} />
            </td>
            <td>
              <Cut>{actorText(e.actor, names)}</Cut>
            </td>
            <td class="full">
              <span title={e.action}>{actionText(e.action)}</span>{" "}
              <strong>
                <Cut>{targetText(e, names)}</Cut>
              </strong>
            </td>
            <td>{e.fields?.map(fieldText).join(", ")}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
