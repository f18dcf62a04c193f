import { useState } from "preact/hooks";
import type { Budget, ConnectionRow, KeyRow, List, ProviderRow, Quota, RequestRow } from "../api-types";
import { providerName } from "../connections";
import { Tabs } from "../tabs";
import { refreshMs, useLoad, useRefresh } from "../hooks";
import { Lazy } from "../lazy";
import { Load, Page, Section } from "../layout";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { Accounts, fixQuery, needsOf } from "./overview/accounts";
import { Budgets } from "./overview/budgets";
import { Checklist, progressOf, useHidden } from "./overview/checklist";
import { Failures } from "./overview/failures";
import { Figures, loadSeries, type Range, ranges } from "./overview/figures";
import { Next } from "./overview/next";
import { Week } from "./overview/week";
import { Cut, ErrorBox } from "../ui";
import "./overview/overview.css";

const newMs = 4000; // between refreshes, while the checklist or an error is shown
const failures = 5; // that are listed

const loadTool = () => import("./overview/tool");

// Overview is the first page of a machine: what to do first, how it works now, and what
// needs its owner.
export default function Overview({ machine, machineName, has }: PageProps) {
  const [range, setRange] = useFilter<Range>(
    "range",
    "day",
    ranges.map(([r]) => r),
  );
  const accounts = useLoad(async () => {
    const [conns, quotas] = await Promise.all([
      machine.list<ConnectionRow>("/providers"),
      machine.list<Quota>("/quota"),
    ]);
    return { conns, quotas };
  }, [machine]);
  const start = useLoad(async () => {
    const [keys, answered] = await Promise.all([
      machine.list<KeyRow>("/keys"),
      machine.get<List<RequestRow>>("/requests?status=2xx&limit=1"),
    ]);
    return { keys, answered: answered.data.length > 0 };
  }, [machine]);
  const series = useLoad(() => loadSeries(machine, range), [machine, range]);
  const week = useLoad(() => loadSeries(machine, "week"), [machine]);
  const failed = useLoad(
    async () => (await machine.get<List<RequestRow>>(`/requests?status=error&limit=${failures}`)).data,
    [machine],
  );
  const hasBudgets = has("GET /api/budgets");
  const budgets = useLoad(async () => (hasBudgets ? machine.list<Budget>("/budgets") : []), [machine]);
  const hasTargets = has("GET /api/destinations");
  const targets = useLoad(
    async () => (hasTargets ? (await machine.list("/destinations")).length : undefined),
    [machine],
  );
  const [hidden, hide] = useHidden(machine);
  const [tool, setTool] = useState(""), // whose command is shown
    [answered, setAnswered] = useState(""); // model that has answered the test of a new account

  const progress = accounts.data && start.data && progressOf(accounts.data.conns, start.data);
  const isNew = !!progress && !hidden && progress.some((done) => !done);
  // bare is whether there is nothing to show but the checklist.
  const rows = [accounts.data?.conns, budgets.data, failed.data];
  const bare = isNew && rows.every((all) => all?.length === 0) && !week.data?.total.requests;
  const needs = accounts.data ? needsOf(accounts.data) : [];
  // The catalogue is the largest answer; only new machines and repairs need it.
  const named = isNew || needs.length > 0;
  const catalog =
    useLoad(async () => (named ? machine.list<ProviderRow>("/catalog/providers") : []), [machine, named]).data ?? [];
  const all = [accounts, series, week, failed, budgets, ...(isNew || !start.data ? [start] : [])];
  const reload = async () => {
    await Promise.all(all.map((l) => l.reload()));
  };
  const errors = all.map((l) => l.error);
  useRefresh(reload, isNew || errors.some(Boolean) ? newMs : refreshMs);
  const said = errors.find((e, i) => e && errors.indexOf(e) < i); // of more than one part
  const unknown = [failed, budgets].every((l) => l.data === null && l.error && l.error === said);
  // above is whether the upper parts have their height, so that nothing below moves.
  const above = [accounts, start, series, week, budgets, targets].every((l) => l.data !== null || l.error !== "");
  return (
    <Page
      title="Overview"
      intro={machineName && <Cut>{machineName}</Cut>}
      actions={!bare && <Tabs label="Period" value={range} items={ranges} onPick={setRange} />}
    >
      {said && <ErrorBox retry={reload}>{said}</ErrorBox>}
      {isNew && (
        <Checklist
          machine={machine}
          progress={progress}
          conns={accounts.data?.conns ?? []}
          catalog={catalog}
          onAccount={(model = "") => {
            setAnswered(model);
            return accounts.reload();
          }}
          onTool={setTool}
          onHide={hide}
        />
      )}
      {tool && <Lazy key={tool} load={loadTool} what="command" props={{ machine, id: tool, answered }} />}
      {progress && !isNew && accounts.data && budgets.data && week.data && !targets.loading && (
        <Next
          machine={machine}
          known={{
            conns: accounts.data.conns,
            needs: needs.map((n) => ({
              id: n.c.id,
              name: n.c.name || providerName(n.c.provider, catalog),
              badge: n.badge,
              query: fixQuery(n),
            })),
            budgets: budgets.data,
            hasBudgets,
            targets: targets.data ?? undefined,
            unpriced: week.data.total.unpricedAttempts ?? 0,
          }}
        />
      )}
      {!bare && (
        <Load of={series} said={said} what="figures" rows={2}>
          {(s) => <Figures machine={machine} range={range} series={s} />}
        </Load>
      )}
      {!!week.data?.total.requests && <Week machine={machine} series={week.data} />}
      <Load of={accounts} said={said} what="accounts" rows={1}>
        {(a) =>
          a.conns.length > 0 && <Accounts machine={machine} catalog={catalog} {...a} onChange={accounts.reload} />
        }
      </Load>
      {above && !unknown && !bare && (
        <div class="grid wide">
          <Section
            title="Recent failures and refusals"
            actions={<a href={`${to(machine.id, "requests")}?status=error`}>All of them</a>}
          >
            <Load of={failed} said={said} what="failures" rows={2}>
              {(rows) => (
                <Failures
                  machine={machine}
                  rows={rows}
                  conns={accounts.data?.conns ?? []}
                  keys={start.data?.keys ?? []}
                />
              )}
            </Load>
          </Section>
          {hasBudgets && (
            <Section title="Budgets" actions={<a href={to(machine.id, "budgets")}>All budgets</a>}>
              <Load of={budgets} said={said} what="budgets" rows={2}>
                {(rows) => <Budgets machine={machine} rows={rows} />}
              </Load>
            </Section>
          )}
        </div>
      )}
    </Page>
  );
}
