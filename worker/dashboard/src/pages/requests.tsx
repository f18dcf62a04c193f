import { now } from "../clock";
import { useState } from "preact/hooks";
import { number } from "../format";
import { useAction, useIdle, useSettled } from "../hooks";
import { Load, Page, Table } from "../layout";
import { useNames } from "../names";
import type { PageProps } from "../page";
import { Popover } from "../popover";
import { replace, to } from "../route";
import { Time } from "../time";
import { Button, Empty, ErrorBox } from "../ui";
import { Views } from "../views";
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
  const names = useNames(machine).data;
  const nameOf: NameOf = (id, of) => (id ? (names?.[of].get(id) ?? `${id.slice(0, 8)}…`) : "");
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
          {list.data && kept(list.data)}{" "}
          {machine.may("viewer") ? (
            <a href={to(machine.id, "settings", "captures")}>Prompts and answers are stored</a>
          ) : (
            "Prompts and answers are stored"
          )}{" "}
          only if an owner turns that on.
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
              <Empty title="No requests yet">
                <p>Requests appear here within seconds.</p>
              </Empty>
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
                    <th>Key</th>
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
          keyName={(id) => nameOf(id, "keys")}
          onClose={() => replace(linkTo())}
        />
      )}
    </Page>
  );
}

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
