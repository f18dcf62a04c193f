import { useEffect, useRef, useState } from "preact/hooks";
import { errorText, type Machine } from "../../api";
import { type Action, type Loaded, useAction, useLoad } from "../../hooks";
import { maxPage, type RequestPage } from "./export";

const perPage = 50; // of the first page
const refreshMs = 5000;
const maxRows = 2000; // of a list that has been open for long

// Requests is the list of requests, the newest first.
export interface Requests extends Loaded<RequestPage> {
  /** loads older ones */
  older: Action & { load: () => Promise<boolean> };
  /** why newer ones could not be loaded, "" without an error */
  newerError: string;
}

// useRequests loads the requests that match a query; paramsNow returns its parameters,
// which change with query. While live, newer requests are added every 5 s.
export function useRequests(
  machine: Machine,
  query: string,
  paramsNow: () => Record<string, string>,
  live: boolean,
): Requests {
  const get = (more: Record<string, string>) =>
    machine.get<RequestPage>(`/requests?${new URLSearchParams({ ...paramsNow(), ...more })}`);
  const list = useLoad(() => get({ limit: String(perPage) }), [machine, query]);
  const older = useAction();
  const [newerError, setNewerError] = useState("");
  const latest = useRef({ query, list });
  latest.current = { query, list };

  // extend makes a call for more requests and adds its page, unless the list is of
  // another query by then.
  const extend = async (more: Record<string, string>, add: (page: RequestPage, to: RequestPage) => RequestPage) => {
    const page = await get(more);
    const now = latest.current;
    if (now.query === query && now.list.data && !now.list.loading) now.list.set(add(page, now.list.data));
  };
  const loadOlder = () =>
    older.run(async () => {
      const cursor = list.data?.cursor;
      if (cursor)
        await extend({ limit: String(maxPage), cursor }, (page, to) => {
          const had = new Set(to.data.map((r) => r.seq));
          return { ...page, data: [...to.data, ...page.data.filter((r) => !had.has(r.seq))] };
        });
    });
  const loadNewer = async () => {
    const { list: now } = latest.current;
    const first = now.data?.data[0];
    if (!first) return now.reload();
    try {
      await extend({ limit: String(maxPage), after: String(first.seq) }, (page, to) => {
        if (page.has_more) return page; // more than a page is new
        const data = [...page.data.filter((r) => r.seq > (to.data[0]?.seq ?? 0)), ...to.data];
        if (data.length <= maxRows) return { ...page, data, has_more: to.has_more, cursor: to.cursor };
        data.length = maxRows;
        return { ...page, data, has_more: true, cursor: String(data[maxRows - 1].seq) };
      });
      setNewerError("");
    } catch (e) {
      setNewerError(errorText(e)); // the same error is not announced again
    }
  };
  const tail = useRef(loadNewer);
  tail.current = loadNewer;
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => {
      if (!document.hidden && !latest.current.list.loading) void tail.current();
    }, refreshMs);
    return () => clearInterval(timer);
  }, [live]);
  return { ...list, older: { ...older, load: loadOlder }, newerError };
}
