// Calls of the gateway's public API, made as a client of the machine makes them.
import { type Machine, request } from "./api";

// ask makes a call with the playground's key: POST with a body, GET without. It
// returns the answer whatever its status.
export async function ask(machine: Machine, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const key = await machine.playgroundKey();
  const res = await request(path, {
    method: body === undefined ? "GET" : "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    credentials: "omit",
    signal,
  });
  if (res.status === 401) await machine.revokePlaygroundKey(); // revoked elsewhere: the next call creates another
  return res;
}

// Served is what the headers of an answer say about how it was served.
export interface Served {
  model: string;
  attempts: number;
  /** request fields that the provider does not support */
  dropped: string;
  /** those that weir set: "max_tokens=4096" */
  set: string;
}

export function served(res: Response): Served {
  const h = (name: string) => res.headers.get(name) ?? "";
  return {
    model: h("x-weir-model"),
    attempts: Number(h("x-weir-attempts") || 0),
    dropped: h("x-weir-dropped").replaceAll(",", ", "),
    set: h("x-weir-set").replaceAll(",", ", "),
  };
}
