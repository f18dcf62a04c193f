// Calls of the gateway's API, in the name of the session.

// ApiError is an answer of 400 and above; status 0 is no answer at all.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
    readonly param = "",
    /** seconds, 0 when the answer names none */
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

export interface Session {
  signedIn: boolean;
  operator: boolean;
  /** of a manage key */
  machineId?: string;
  keyName?: string;
  keyId?: string;
  csrfToken?: string;
  /** Unix milliseconds */
  idleAt?: number;
  expiresAt?: number;
}

let csrf = "";
let ended: (why: string) => void = () => {};
let reauth: () => Promise<boolean> = async () => false;

// on tells what to do when the session is over, and when a call asks for the
// credential again.
export function on(handlers: { ended: (why: string) => void; reauth: () => Promise<boolean> }) {
  ({ ended, reauth } = handlers);
}

async function failure(res: Response): Promise<ApiError> {
  const text = await res.text().catch(() => "");
  let e: { message?: string; code?: string; param?: string } = {};
  try {
    e = JSON.parse(text).error ?? {};
  } catch {
    /* not JSON */
  }
  return new ApiError(
    res.status,
    e.message ?? `the gateway answered ${res.status}`,
    e.code ?? "",
    e.param ?? "",
    Number(res.headers.get("retry-after") ?? 0),
  );
}

// raw makes one call and gives its answer, or throws an ApiError.
export async function raw(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  // A change that was begun goes out also when the page is left.
  const init: RequestInit = {
    method,
    signal,
    keepalive: method === "DELETE",
    credentials: "same-origin",
    cache: "no-store",
    headers: method === "GET" ? headers : { "content-type": "application/json", ...headers },
  };
  if (body !== undefined) init.body = JSON.stringify(body);
  let res: Response;
  try {
    res = await fetch(path, init);
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new ApiError(0, "the gateway cannot be reached");
  }
  if (!res.ok) throw await failure(res);
  return res;
}

// answer makes a call of the management API and gives its answer. A change carries
// the session's token; one that needs a recent sign-in asks for it, and goes
// out again.
async function answer(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const send = () => raw(method, path, body, method === "GET" ? headers : { ...headers, "x-csrf-token": csrf });
  try {
    return await send();
  } catch (e) {
    if (!(e instanceof ApiError)) throw e;
    if (e.status === 401) ended("The session has ended. Sign in again.");
    // Another tab has signed in anew, or the sign-in is too long ago.
    const again =
      e.code === "csrf_token" ? (await whoami()).signedIn : e.code === "reauth_required" && (await reauth());
    if (!again) throw e;
    return send();
  }
}

async function read<T>(res: Response): Promise<T> {
  if (res.status === 204) return null as T;
  try {
    return await res.json();
  } catch {
    throw new ApiError(res.status, "the gateway’s answer cannot be read");
  }
}

// call makes such a call and gives its JSON.
export async function call<T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<T> {
  return read(await answer(method, path, body, headers));
}

async function session(res: Promise<Response>): Promise<Session> {
  const s: Session = await (await res).json();
  csrf = s.csrfToken ?? "";
  return s;
}

export const whoami = () => session(raw("GET", "/api/session"));
export const signIn = (token: string) => session(raw("POST", "/api/session", { token }));

// signOut ends the session; all ends every one of the same token or key.
export async function signOut(all: boolean) {
  await raw("DELETE", "/api/session" + (all ? "?all=true" : ""), undefined, { "x-csrf-token": csrf });
  csrf = "";
}

const tryName = "Dashboard playground";

// Tagged is a value, and the ETag of the state it was read in.
export interface Tagged<T> {
  value: T;
  tag: string;
}

// Machine is the management of one machine.
export class Machine {
  private asked: Promise<string> | null = null;
  private dataKey: { id: string; key: string; until: number } | null = null;
  constructor(readonly id: string) {}
  at(path: string) {
    return `/${this.id}/api${path}`;
  }
  get<T>(path: string) {
    return call<T>("GET", this.at(path));
  }
  post<T>(path: string, body: unknown, headers?: Record<string, string>) {
    return call<T>("POST", this.at(path), body, headers);
  }
  // put writes; with a generation only while the record is still that one, else it fails with 412.
  put<T>(path: string, body: unknown, generation?: number) {
    return call<T>("PUT", this.at(path), body, generation ? { "if-match": `"${generation}"` } : {});
  }
  // tagged reads something that has no generation of its own, or changes it while
  // it still is what it was with that tag, else it fails with 412.
  async tagged<T>(method: "GET" | "PATCH" | "POST", path: string, body?: unknown, tag?: string): Promise<Tagged<T>> {
    const res = await answer(method, this.at(path), body, tag ? { "if-match": tag } : {});
    return { value: await read<T>(res), tag: res.headers.get("etag") ?? `"0"` }; // of what was never changed
  }
  del(path: string) {
    return call<null>("DELETE", this.at(path));
  }

  // tryKey gives a data key for the playground: made on first use, good for an
  // hour, and kept in this page's memory alone.
  tryKey(): Promise<string> {
    return (this.asked ??= this.makeKey().finally(() => {
      this.asked = null;
    }));
  }

  private async makeKey(): Promise<string> {
    const now = Date.now();
    if (!this.dataKey || this.dataKey.until < now + 60_000) {
      const until = now + 3_600_000;
      // Those of pages that were closed without signing out have expired by now.
      const { data } = await this.get<{ data: { id: string; name?: string; expiresAt?: number }[] }>("/keys");
      for (const old of data)
        if (old.name === tryName && old.expiresAt && old.expiresAt < now)
          await this.del(`/keys/${old.id}`).catch(() => {});
      const k = await this.post<{ id: string; apiKey: string }>("/keys", {
        name: tryName,
        scopes: ["data"],
        expiresAt: until,
      });
      this.dataKey = { id: k.id, key: k.apiKey, until };
    }
    return this.dataKey.key;
  }

  // forget revokes that key.
  async forget() {
    const k = this.dataKey;
    this.dataKey = null;
    if (k) await this.del(`/keys/${k.id}`).catch(() => {});
  }
}

// words tells an error to a person.
export function words(e: unknown): string {
  if (!(e instanceof ApiError)) return e instanceof Error ? e.message : String(e);
  let text = e.message.charAt(0).toUpperCase() + e.message.slice(1);
  if (!/[.!?…]$/.test(text)) text += ".";
  if (e.status === 412) text = "Someone else changed this. Reload and try again.";
  if (e.retryAfter > 0) text += ` Try again in ${duration(e.retryAfter * 1000)}.`;
  return text;
}

// duration tells a time in the unit that suits it: "45 s", "12 min", "1.5 h".
export function duration(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return `${Math.round(s / 360) / 10} h`;
}
