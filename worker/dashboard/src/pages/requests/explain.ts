import type { RequestRow } from "../../api-types";
import { to } from "../../route";
import { examples, geminiRoute } from "../explain/examples";

// explainLink returns the address of the explanation of a call with the same
// endpoint, key, model, session, account, headers and form of the answer; "" if its
// endpoint cannot be explained.
export function explainLink(machineId: string, r: RequestRow): string {
  const known = r.endpoint === geminiRoute || examples.some((e) => e.path === r.endpoint);
  if (!known || !r.asked) return "";
  const { "x-connection-id": account, ...headers } = r.headers ?? {};
  const query = new URLSearchParams({
    path: r.endpoint,
    model: r.asked,
    ...(r.keyId && { key: r.keyId }),
    ...(r.session && { session: r.session }),
    ...(account && { account }),
    ...(Object.keys(headers).length > 0 && { headers: JSON.stringify(headers) }),
    ...(r.firstMs && { stream: "true" }),
  });
  return `${to(machineId, "explain")}?${query}`;
}
