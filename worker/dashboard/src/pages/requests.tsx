import type { RequestRow } from "../api-types";
import { now } from "../clock";
import { useState } from "preact/hooks";
import type { Machine } from "../api";
import type { KeyRow, SettingValues } from "../api-types";
import { number, percent } from "../format";
import { useAction, useIdle, useLoad, useSettled } from "../hooks";
import { Load, Page, Table } from "../layout";
import { nameIn } from "../named";
import { useNames } from "../lookup";
import type { PageProps } from "../page";
import { Popover } from "../popover";
import { replace, to } from "../route";
import { Time } from "../time";
import { Button, Empty, ErrorBox } from "../ui";
import { NoRequests, Views } from "../views";
import { VirtualBody } from "../virtual";
import { Details } from "./requests/details";
import { type NameOf, saveJson, type RequestPage } from "./requests/export";
import { FilterRow, paramsOf, useFilters } from "./requests/filters";
import { useRequests } from "./requests/list";
import { Row } from "./requests/row";

// Requests lists the latest requests of the machine's clients: the model, the
// connection that served it, and why attempts failed. One of them is open at
// #/m/{machineId}/requests/{id}.
export default function Requests({ machine, args: [open] }: PageProps) {
  const filters = useFilters();
  const settled = useSettled(JSON.stringify(filters.values), 250);
  const params = () => paramsOf(JSON.parse(settled), now());
  const [live, setLive] = useState(true);
  const idle = useIdle();
  const list = useRequests(machine, settled, params, live && !idle && !filters.values.sort);
  const { key, connection } = filters.values;
  const names = useNames(machine, [...(list.data?.data.flatMap(idsOf) ?? []), key, connection]);
  // Accounts have names for those who may see them. Members see the provider.
  const nameOf: NameOf = (id, of) => (id && (of === "keys" || machine.may("viewer")) ? nameIn(names, of, id) : "");
  const saving = useAction();
  const { sort, ...filter } = params();
  // linkTo keeps the filters, which are in the address.
  const linkTo = (...id: string[]) => {
    const query = location.hash.split("?")[1];
    return to(machine.id, "requests", ...id) + (query ? `?${query}` : "");
  };
  const failed = saving.error || list.older.error || list.newerError;
  return (
    <Page
      title="Requests"
      intro={
        <>
          {list.data && kept(list.data)} <Captured machine={machine} />
        </>
      }
      actions={
        <>
          <label class="row tight">
            <input type="checkbox" checked={live} onChange={(e) => setLive(e.currentTarget.checked)} />
            Live{live && (idle || sort) && " (paused)"}
          </label>
          <span class={live ? "desk" : ""}>
            <Button onClick={() => void list.reload()}>Refresh</Button>
          </span>
          <Popover label="Export">
            {() => (
              <ul class="views">
                <li>
                  <a class="button quiet" href={machine.at(`/requests.csv?${new URLSearchParams(filter)}`)} download>
                    CSV
                  </a>
                </li>
                <li>
                  <Button
                    kind="quiet"
                    busy={saving.busy}
                    onClick={() => void saving.run(() => saveJson(machine, params()))}
                  >
                    JSON
                  </Button>
                </li>
              </ul>
            )}
          </Popover>
        </>
      }
    >
      <FilterRow filters={filters} names={names}>
        <Views machine={machine} page="requests" />
      </FilterRow>
      {failed && <ErrorBox>{failed}</ErrorBox>}
      <Load of={list} what="requests" rows={6}>
        {({ data, has_more }) =>
          data.length === 0 ? (
            filters.any ? (
              <Empty title="No requests found" />
            ) : (
              <NoRequests machine={machine} />
            )
          ) : (
            <>
              <Table label="Requests" stacked list rowCount={data.length + 1}>
                <thead>
                  <tr aria-rowindex={1}>
                    <th>Time</th>
                    <th>Model</th>
                    <th>Served by</th>
                    <th>Status</th>
                    <th class="num">Latency</th>
                    <th class="num spare">Tokens</th>
                    <th class="num">Cost</th>
                    <th class="spare">Key</th>
                  </tr>
                </thead>
                <VirtualBody rows={data} columns={8} keyOf={(r) => r.seq}>
                  {(r, i) => (
                    <Row
                      key={r.seq}
                      r={r}
                      index={i}
                      link={linkTo(r.id)}
                      connectionName={(id) => nameOf(id, "connections")}
                      keyName={nameOf(r.keyId, "keys")}
                    />
                  )}
                </VirtualBody>
              </Table>
              {has_more && (
                <Button busy={list.older.busy} onClick={() => void list.older.load()}>
                  Load more
                </Button>
              )}
            </>
          )
        }
      </Load>
      {open && (
        <Details
          key={open}
          id={open}
          machine={machine}
          listed={list.data?.data.find((r) => r.id === open)}
          connectionName={(id) => nameOf(id, "connections")}
          accountLink={(id) => (id && names?.connections.has(id) ? to(machine.id, "providers", id) : "")}
          keyName={(id) => nameOf(id, "keys")}
          onClose={() => replace(linkTo())}
        />
      )}
    </Page>
  );
}

// idsOf returns the ids in a request that have names.
const idsOf = (r: RequestRow) => [r.keyId, r.connectionId, ...(r.failed?.map((f) => f.connectionId) ?? [])];

// kept returns what the list has, if it does not have every request.
function kept({ kept, total, lostFailureAt }: RequestPage) {
  if (kept >= total) return null;
  return (
    <>
      {number(kept)} of {number(total)} requests are stored: the latest, all failures
      {lostFailureAt && (
        <>
          {" "}
          since <Time at={lostFailureAt} />
        </>
      )}
      , the slowest, the most expensive, and a sample of the rest.
    </>
  );
}

// Captured says whether prompts and answers are stored, as the settings and the keys are.
function Captured({ machine }: { machine: Machine }) {
  const of = useLoad(async () => {
    if (!machine.may("viewer")) return null;
    const [{ capturePercent }, keys] = await Promise.all([
      machine.get<SettingValues>("/settings"),
      machine.list<KeyRow>("/keys"),
    ]);
    return { share: capturePercent / 100, keys: keys.some((k) => k.capturePercent) };
  }, [machine]).data;
  if (!of) return machine.may("viewer") ? null : <>Prompts and answers are stored only if an owner turns that on.</>;
  const { share, keys } = of;
  const link = machine.may("owner") && (
    <a href={to(machine.id, "settings", "captures")}>{share || keys ? "Change" : "Turn on"}</a>
  );
  if (!share)
    return (
      <>
        Prompts and answers are {keys ? "stored of some keys" : "not stored"}. {link}
      </>
    );
  return (
    <>
      Prompts and answers {share < 1 && `of ${percent(share)} of requests `}are stored. {link}
    </>
  );
}
