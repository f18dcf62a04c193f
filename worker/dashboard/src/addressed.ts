import { useEffect, useState } from "preact/hooks";
import type { Machine } from "./api";
import { useMemoryState } from "./draft";
import { go, to } from "./route";

// useAddressed is the record of a page's list that is edited, which the address names:
// {page}/new, {page}/{id}. An editor that was left reopens with its unsaved input; going
// back closes it.
//
//	page    its path; with the section, as settings/exports, if the list is in one
//	asked   the id in the address
//	list    the records, once they are loaded
//	blank   a new record, whose id is empty
export function useAddressed<T extends { id: string }>(
  machine: Machine,
  page: string,
  asked: string | undefined,
  list: T[] | null | undefined,
  blank: T,
): [edited: T | null, edit: (record: T | null) => void] {
  const [edited, setEdited] = useMemoryState<T | null>(`${page} ${machine.id}`, null);
  const edit = (record: T | null) => {
    setEdited(record);
    const [first, ...rest] = page.split("/");
    go(to(machine.id, first, ...rest, ...(record ? [record.id || "new"] : [])));
  };
  useEffect(() => {
    if (!asked || asked === (edited?.id || (edited && "new"))) return;
    const record = asked === "new" ? blank : list?.find((r) => r.id === asked);
    if (record) setEdited(record);
  }, [asked, list]);
  const [last, setLast] = useState(asked);
  if (last !== asked) {
    setLast(asked);
    if (!asked) setEdited(null);
  }
  return [edited, edit];
}
