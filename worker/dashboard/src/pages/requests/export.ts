import type { Machine } from "../../api";
import type { List, RequestRow } from "../../api-types";
import { download } from "../../download";

// RequestPage is a page of GET /api/requests.
export interface RequestPage extends List<RequestRow> {
  has_more: boolean;
  /** of the next page */
  cursor?: string;
  /** requests in the list, of total since the oldest of them */
  kept: number;
  total: number;
  /** when the last failure came in that is not listed */
  lostFailureAt?: number;
}

export const maxPage = 200; // requests in one answer

export type NameOf = (id: string | undefined, of: "keys" | "connections") => string;

// saveJson downloads every request that matches the filters.
export async function saveJson(machine: Machine, params: Record<string, string>) {
  const all: RequestRow[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const query: string = new URLSearchParams({ ...params, limit: String(maxPage), cursor }).toString();
    const page: RequestPage = await machine.get<RequestPage>(`/requests?${query}`);
    all.push(...page.data);
    cursor = page.cursor;
  }
  const name = `requests-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}`;
  download(`${name}.json`, "application/json", JSON.stringify(all, null, 2));
}
