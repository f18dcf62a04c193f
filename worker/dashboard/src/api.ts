// Calls of the management API, with the session cookie.
import type { List, Session } from "./api-types";
import { follow, now } from "./clock";
import { duration } from "./format";
import { atLeast, type Role } from "./roles";

// ApiError is an answer of 400 and above; status 0 is a call without an answer.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
    readonly param = "",
    /** seconds, 0 if the answer has no Retry-After */
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

const unreachable = "The gateway cannot be reached. Check that it runs, and your network.";

let csrf = "";
let onEnded: (message: string) => void = () => {};
let reauthenticate: () => Promise<boolean> = async () => false;

// setHandlers sets the functions that are called when the session has ended, and
// when a call needs a recent sign-in; the latter reports whether there was one.
export function setHandlers(handlers: { ended: (message: string) => void; reauth: () => Promise<boolean> }) {
  ({ ended: onEnded, reauth: reauthenticate } = handlers);
}

// apiError reads the error of an answer, in the format of OpenAI or Anthropic.
export async function apiError(res: Response): Promise<ApiError> {
  const text = await res.text().catch(() => "");
  let e: { message?: string; code?: string; type?: string; param?: string } = {};
  try {
    e = JSON.parse(text).error ?? {};
  } catch {
    /* not JSON */
  }
  return new ApiError(
    res.status,
    e.message ?? `The gateway returned status ${res.status}.`,
    e.code ?? e.type ?? "",
    e.param ?? "",
    Number(res.headers.get("retry-after") ?? 0),
  );
}

// request is fetch that throws an ApiError if there is no answer.
export async function request(path: string, init: RequestInit): Promise<Response> {
  try {
    const res = await fetch(path, { cache: "no-store", ...init });
    follow(res);
    return res;
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new ApiError(0, unreachable);
  }
}

// raw makes one call and returns its answer; it throws an ApiError if the status
// is 400 or above.
export async function raw(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const init: RequestInit = {
    method,
    keepalive: method === "DELETE", // sent even if the page is closed
    credentials: "same-origin",
    headers: method === "GET" ? headers : { "content-type": "application/json", ...headers },
  };
  if (body !== undefined) init.body = JSON.stringify(body);
  const res = await request(path, init);
  if (!res.ok) throw await apiError(res);
  return res;
}

// send makes a call with the session's CSRF token. If the token is outdated or
// the call needs a recent sign-in, it repeats the call once that is resolved.
async function send(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const once = () => raw(method, path, body, method === "GET" ? headers : { ...headers, "x-csrf-token": csrf });
  try {
    return await once();
  } catch (e) {
    if (!(e instanceof ApiError)) throw e;
    if (e.status === 401) onEnded("Your session has ended. Sign in again.");
    // A sign-in in another tab has changed the token.
    const again =
      e.code === "csrf_token" ? (await whoami()).signedIn : e.code === "reauth_required" && (await reauthenticate());
    if (!again) throw e;
    return once();
  }
}

async function json<T>(res: Response): Promise<T> {
  if (res.status === 204) return null as T;
  try {
    return await res.json();
  } catch {
    throw new ApiError(res.status, "The gateway returned an invalid answer.");
  }
}

// call makes a call and returns its JSON.
export async function call<T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<T> {
  return json(await send(method, path, body, headers));
}

// session returns the session of an answer, whose CSRF token later calls send.
export async function session(res: Promise<Response>): Promise<Session> {
  const s: Session = await (await res).json();
  csrf = s.csrfToken ?? "";
  return s;
}

export const whoami = () => session(raw("GET", "/api/session"));
export const signIn = (token: string) => session(raw("POST", "/api/session", { token }));
// accept signs in by the secret of an invitation.
export const accept = (invitation: string, name: string) =>
  session(raw("POST", "/api/session", { invitation, ...(name && { name }) }));

// byPasskey is the id of the way by a passkey, which has no address to open.
export const byPasskey = "passkey";

// providers lists the identity providers by which people sign in, and passkeys if they are on.
export async function providers() {
  const auth: { methods: string[]; providers: { id: string; name: string }[] } = await (
    await raw("GET", "/api/auth")
  ).json();
  if (auth.methods.includes("passkey")) auth.providers.push({ id: byPasskey, name: "a passkey" });
  return auth.providers;
}

// signInAt returns the address at which a person signs in by an identity provider, and accepts an
// invitation by its secret if there is one.
export const signInAt = async (id: string, invitation?: string) =>
  ((await (await raw("POST", `/api/sign-in/${id}`, { invitation })).json()) as { url: string }).url;

// signOut ends the session; with all, every session of the same token or key.
export async function signOut(all: boolean) {
  await raw("DELETE", `/api/session${all ? "?all=true" : ""}`, undefined, { "x-csrf-token": csrf });
  csrf = "";
}

export const playgroundKeyName = "Dashboard playground";
const playgroundKeyMs = 3_600_000;

// Tagged is a value and the ETag of the state it was read in.
export interface Tagged<T> {
  value: T;
  tag: string;
}

// Machine is the management API of one machine.
export class Machine {
  private creating: Promise<string> | null = null;
  private dataKey: { id: string; key: string; until: number } | null = null;
  constructor(
    readonly id: string,
    readonly role: Role = "owner",
  ) {}
  /** reports whether the role of the user includes another */
  may(least: Role) {
    return atLeast(this.role, least);
  }
  at(path: string) {
    return `/${this.id}/api${path}`;
  }
  get<T>(path: string) {
    return call<T>("GET", this.at(path));
  }
  async list<T>(path: string) {
    return (await this.get<List<T>>(path)).data;
  }
  // modelIds returns the ids of the models of a kind, see models.ts.
  async modelIds(segment: string) {
    return (await this.list<{ id: string }>(`/models/list/${segment}`)).map((m) => m.id);
  }
  post<T>(path: string, body: unknown, headers?: Record<string, string>) {
    return call<T>("POST", this.at(path), body, headers);
  }
  // put writes a record. With a generation it fails with 412 if the record has
  // another one.
  put<T>(path: string, body: unknown, generation?: number) {
    return call<T>("PUT", this.at(path), body, generation ? { "if-match": `"${generation}"` } : {});
  }
  // tagged reads or changes a record that has an ETag instead of a generation. With
  // a tag it fails with 412 if the record has another one.
  async tagged<T>(method: "GET" | "PATCH" | "POST", path: string, body?: unknown, tag?: string): Promise<Tagged<T>> {
    const res = await send(method, this.at(path), body, tag ? { "if-match": tag } : {});
    return { value: await json<T>(res), tag: res.headers.get("etag") ?? `"0"` }; // a record that was never changed
  }
  del(path: string) {
    return call<null>("DELETE", this.at(path));
  }

  // playgroundKey returns an API key for the playground. It is created on first
  // use, expires after an hour and is stored only in this page's memory.
  playgroundKey(): Promise<string> {
    this.creating ??= this.createPlaygroundKey().finally(() => {
      this.creating = null;
    });
    return this.creating;
  }

  private async createPlaygroundKey(): Promise<string> {
    if (!this.dataKey || this.dataKey.until < now() + 60_000) {
      const until = now() + playgroundKeyMs;
      // Remove the expired keys of pages that were closed without signing out.
      for (const old of await this.list<{ id: string; name?: string; expiresAt?: number }>("/keys"))
        if (old.name === playgroundKeyName && old.expiresAt && old.expiresAt < now())
          await this.del(`/keys/${old.id}`).catch(() => {});
      const k = await this.post<{ id: string; apiKey: string }>("/keys", {
        name: playgroundKeyName,
        scopes: ["data"],
        expiresAt: until,
      });
      this.dataKey = { id: k.id, key: k.apiKey, until };
    }
    return this.dataKey.key;
  }

  // revokePlaygroundKey revokes that key, if there is one.
  async revokePlaygroundKey() {
    const k = this.dataKey;
    this.dataKey = null;
    if (k) await this.del(`/keys/${k.id}`).catch(() => {});
  }
}

// byCode are the texts of errors whose message is written for API clients.
const byCode: Record<string, string> = {
  invitation_invalid: "This invitation was used, has expired or was withdrawn. Ask for another one.",
  stale: "Someone else changed this. Reload to see it; what you typed stays.",
  too_many_attempts: "Too many sign-in attempts.",
  session_expired: "Your session has ended. Sign in again.",
  reauth_required: "Sign in again to do this.",
  cross_site: "Blocked: this request came from another site.",
  csrf_token: "Your session has changed in another tab. Reload this page.",
  machine_not_found: "This machine no longer exists.",
  connection_not_found: "This account no longer exists.",
  key_not_found: "This key no longer exists.",
  request_not_found: "This request is no longer stored.",
  capture_not_found: "The prompt and answer are no longer stored.",
  combo_not_found: "This combo no longer exists.",
  alias_not_found: "This alias no longer exists.",
};

// errorText returns an error as a sentence for the user, with the time to wait.
export function errorText(e: unknown): string {
  if (!(e instanceof ApiError)) return e instanceof Error ? e.message : String(e);
  let text = byCode[e.code] ?? sentence(named(e));
  if (e.status === 412) text = byCode.stale;
  if (e.retryAfter > 0)
    text = `${text.replace(/ Try again [^.]*\.$/, "")} Try again in ${duration(e.retryAfter * 1000)}.`;
  return text;
}

// named returns the message of an error with the label of its field in place of the field's name:
// "Base URL is…" of "providerSpecificData.baseUrl is…".
function named({ message, param }: ApiError): string {
  if (!param || !message.startsWith(`${param} `)) return message;
  const words = param
    .slice(param.lastIndexOf(".") + 1)
    .replace(/[A-Z]|_/g, (c) => ` ${c.toLowerCase()}`.replace("_", ""));
  return words.replace(/\b(api|aws|id|url)\b/g, (c) => c.toUpperCase()) + message.slice(param.length);
}

// sentence capitalizes a text and ends it with a period.
export function sentence(text: string): string {
  const s = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(s) ? s : `${s}.`;
}
