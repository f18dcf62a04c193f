// Calls of the data plane, as a client of the machine makes them.
import { ApiError, type Machine } from "./api";

// ask sends a call with the machine's key for an hour; without a body it reads.
// Whatever the gateway answers is given back, also a refusal.
export async function ask(machine: Machine, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const key = await machine.tryKey();
  try {
    const res = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      credentials: "omit",
      cache: "no-store",
      signal,
    });
    if (res.status === 401) await machine.forget(); // somebody has revoked it; the next call makes another
    return res;
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new ApiError(0, "the gateway cannot be reached");
  }
}

// refusal reads the error of an answer, in the dialect of OpenAI or Anthropic.
export async function refusal(res: Response): Promise<ApiError> {
  const text = await res.text().catch(() => "");
  let e: { message?: string; code?: string; type?: string } = {};
  try {
    e = JSON.parse(text).error ?? {};
  } catch {
    /* not JSON */
  }
  return new ApiError(
    res.status,
    e.message ?? `the gateway answered ${res.status}`,
    e.code ?? e.type ?? "",
    "",
    Number(res.headers.get("retry-after") ?? 0),
  );
}

// Served is what the gateway says of an answer in its head.
export interface Served {
  status: number;
  model: string;
  connection: string;
  attempts: number;
  dropped: string[];
  requestId: string;
}

export function served(res: Response): Served {
  const h = (name: string) => res.headers.get(name) ?? "";
  return {
    status: res.status,
    model: h("x-weir-model"),
    connection: h("x-weir-connection-id"),
    attempts: Number(h("x-weir-attempts") || 0),
    dropped: h("x-weir-dropped").split(",").filter(Boolean),
    requestId: h("x-request-id"),
  };
}

export const attemptsText = (s: Served) => (s.attempts === 1 ? "at the first attempt" : `after ${s.attempts} attempts`);

// shell quotes a text for a POSIX shell.
export const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

// curlOf writes a call as a command; its key stands in a variable.
export function curlOf(path: string, body: unknown): string {
  return `curl ${shell(location.origin + path)} \\\n  -H "Authorization: Bearer $WEIR_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d ${shell(JSON.stringify(body))}`;
}
