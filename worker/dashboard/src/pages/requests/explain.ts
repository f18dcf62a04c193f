import type { RequestRow } from "../../api-types";
import { to } from "../../route";
import { examples, geminiRoute } from "../explain/examples";

// explainLink returns the address of the explanation of a call with the same
// endpoint, key, model and form of the answer; "" if its endpoint cannot be explained.
export function explainLink(machineId: string, r: RequestRow): string {
  const known = r.endpoint === geminiRoute || examples.some((e) => e.path === r.endpoint);
  if (!known || !r.asked) return "";
  const query = new URLSearchParams({
    path: r.endpoint,
    model: r.asked,
    ...(r.keyId && { key: r.keyId }),
    ...(r.firstMs && { stream: "true" }),
  });
  return `${to(machineId, "explain")}?${query}`;
}
