import { useEffect, useState } from "preact/hooks";
import type { List, RequestRow } from "../api-types";
import { useAction, useIdle, useLoad, useSettled } from "../hooks";
import { useNames } from "../names";
import type { PageProps } from "../page";
import { Load, Page, Table } from "../layout";
import { Button, Empty, ErrorBox } from "../ui";
import { FilterRow, useFilters } from "./requests/filters";
import { Row } from "./requests/row";

const perPage = 50;
const refreshMs = 5000;
const idleMs = 10 * 60_000; // without input, after which the page stops refreshing

// RequestPage is a page of GET /api/requests.
interface RequestPage extends List<RequestRow> {
  has_more: boolean;
}

// Requests lists the latest requests of the machine's clients: the model, the
// connection that served it, and why attempts failed.
export default function Requests({ machine }: PageProps) {
  const filters = useFilters();
  const { key, connection, model, status, failed } = filters.values;
  const q = useSettled(filters.values.q.trim(), 250);
  const [auto, setAuto] = useState(true);
  const [older, setOlder] = useState<RequestRow[]>([]),
    [more, setMore] = useState(true);
  const query = (before = 0) =>
    "/requests?" +
    new URLSearchParams({
      limit: String(perPage),
      ...(q && { q }),
      ...(key && { key }),
      ...(connection && { connection }),
      ...(model && { model }),
      ...(status && { status }),
      ...(failed && { failed }),
      ...(before && { before: String(before) }),
    });
  const list = useLoad(() => machine.get<RequestPage>(query()), [machine, q, key, connection, model, status, failed]);
  useEffect(() => {
    setOlder([]);
    setMore(true);
  }, [machine, q, key, connection, model, status, failed]);
  const names = useNames(machine).data;
  const idle = useIdle(idleMs);
  // The list is not refreshed while older requests are shown.
  useEffect(() => {
    if (!auto || idle || older.length > 0) return;
    const timer = setInterval(() => {
      if (!document.hidden) void list.reload();
    }, refreshMs);
    return () => clearInterval(timer);
  }, [auto, idle, list.reload, older.length]);
  const next = useAction();
  const loadMore = (last: RequestRow) =>
    next.run(async () => {
      const page = await machine.get<RequestPage>(query(last.seq));
      setOlder((o) => [...o, ...page.data]);
      setMore(page.has_more);
    });
  const nameOf = (id: string | undefined, of: "keys" | "connections") =>
    id ? (names?.[of].get(id) ?? `${id.slice(0, 8)}…`) : "";
  const filtered = !!(q || key || connection || model || status || failed);
  return (
    <Page
      title="Requests"
      intro="The latest ~1,000 requests. Prompts and answers are never stored."
      actions={
        <>
          <label class="row tight">
            <input type="checkbox" checked={auto} onChange={(e) => setAuto(e.currentTarget.checked)} />
            Auto-refresh{auto && idle && " (paused)"}
          </label>
          <Button
            onClick={() => {
              setOlder([]);
              setMore(true);
              void list.reload();
            }}
          >
            Refresh
          </Button>
        </>
      }
    >
      <FilterRow filters={filters} names={names} />
      <Load of={list} what="requests" rows={6}>
        {({ data, has_more }) => {
          const all = older.length > 0 ? [...data, ...older.filter((r) => r.seq < data[data.length - 1].seq)] : data;
          if (all.length === 0) {
            return filtered ? (
              <Empty title="No requests found" />
            ) : (
              <Empty title="No requests yet">
                <p>Requests appear here within seconds.</p>
              </Empty>
            );
          }
          return (
            <>
              <Table label="Requests" stacked>
                <thead>
                  <tr>
                    <th>Time</th>
                    <th>Requested model</th>
                    <th>Served by</th>
                    <th>Status</th>
                    <th class="num">Latency</th>
                    <th class="num">Tokens</th>
                    <th class="num">Cost</th>
                    <th>Key</th>
                  </tr>
                </thead>
                <tbody>
                  {all.map((r) => (
                    <Row
                      key={r.seq}
                      r={r}
                      connectionName={(id) => nameOf(id, "connections")}
                      keyName={nameOf(r.keyId, "keys")}
                    />
                  ))}
                </tbody>
              </Table>
              {next.error && <ErrorBox>{next.error}</ErrorBox>}
              {(older.length > 0 ? more : has_more) && (
                <Button busy={next.busy} onClick={() => void loadMore(all[all.length - 1])}>
                  Load more
                </Button>
              )}
            </>
          );
        }}
      </Load>
    </Page>
  );
}
