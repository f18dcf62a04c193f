// What the pages know of connections and providers.

// ConnectionRow is a stored connection, as GET /api/providers shows it.
export interface ConnectionRow {
  id: string;
  provider: string;
  name?: string;
  authType: string;
  hasKey: boolean;
  last4?: string;
  secrets: string[];
  priority: number;
  isActive: boolean;
  providerSpecificData: Record<string, unknown> & { baseUrl?: string; prefix?: string; enabledModels?: string[] };
  status: string;
  /** outcome of its last call: ready, untested, key_refused, out_of_credit, limited, unreachable, failing */
  health: string;
  /** Unix milliseconds */
  healthAt?: number;
  lastSuccessAt?: number;
  lastError?: string;
  /** Unix milliseconds */
  cooldownUntil?: number;
  generation: number;
  tokenGeneration: number;
  updatedAt: number;
  expiresAt?: number;
}

// ProviderRow is a provider of the table, as GET /api/catalog/providers shows it.
export interface ProviderRow {
  id: string;
  alias: string;
  name: string;
  kinds: string[];
  auth: string;
  keyFree: boolean;
  vars: string[];
  optionalVars: string[];
  baseUrlAllowed: boolean;
  baseUrl?: string;
  local: boolean;
  listsModels: boolean;
  /** how an account may be signed in to */
  connect: ("authorize" | "device")[];
}

// TestResult is the outcome of a test; error is null if it succeeded.
export interface TestResult {
  ok: boolean;
  latencyMs: number;
  status: number;
  error: string | null;
  message?: string;
  model?: string;
}

// testText tells the outcome of a test to a person.
export function testText(r: TestResult): string {
  if (r.ok) return r.model ? `Answered in ${r.latencyMs} ms (${r.model}).` : `Listed its models in ${r.latencyMs} ms.`;
  return r.message ?? r.error ?? "The test failed.";
}

// local matches hosts of a private network, which rarely have certificates.
const local =
  /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[|[^.:/]+(:|\/|$)|[^:/]+\.(local|lan|internal|home\.arpa)\b)/i;

// address adds a missing scheme to a base URL: http for hosts of a private network,
// https for others.
export function address(typed: string): string {
  const text = typed.trim();
  if (!text || /^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  return (local.test(text) ? "http://" : "https://") + text;
}

// errorText tells the last error of a connection; codes of an identity provider
// (RFC 6749 5.2) are put in words.
export function errorText(error: string): string {
  switch (error) {
    case "invalid_grant":
      return "the provider no longer accepts the sign-in (invalid_grant)";
    case "invalid_client":
    case "unauthorized_client":
      return `the provider refuses the gateway’s client (${error})`;
  }
  return error;
}

export const kindNames: Record<string, string> = {
  llm: "Chat",
  embedding: "Embeddings",
  image: "Images",
  tts: "Speech",
  stt: "Transcription",
  imageToText: "Image to text",
  video: "Video",
  music: "Music",
  rerank: "Rerank",
  webSearch: "Web search",
  webFetch: "Web fetch",
};

export type Family = "openai-compatible" | "anthropic-compatible";

// families are what a compatible provider may speak.
export const families: [id: Family, name: string][] = [
  ["openai-compatible", "OpenAI-compatible"],
  ["anthropic-compatible", "Anthropic-compatible"],
];

// family names what a compatible provider speaks; "" is one of the table.
export const family = (provider: string) =>
  families.find(([id]) => provider.startsWith(id + "-") || provider.startsWith(id + "_"))?.[1] ?? "";

export const providerName = (id: string, list: ProviderRow[]) =>
  list.find((p) => p.id === id)?.name ?? (family(id) || id);

// suffix makes the id of a compatible provider its own.
export function suffix(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(6)), (b) => b.toString(16).padStart(2, "0")).join("");
}

// varLabel names a variable of a connection: "account_id" is "Account id".
export function varLabel(name: string, required: boolean): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1) + (required ? "" : " (optional)");
}

const gap = 10; // between the priorities of neighbours, so that most moves change one connection alone

// placed gives the connections of an order, one of them moved, priorities that
// rise with it. Where there is no room, neighbours of the shorter side make way;
// equal priorities are no order, then all get one. Those that keep their
// priority stay the same objects.
export function placed<C extends { id: string; priority: number }>(order: C[], id: string): C[] {
  const at = order.findIndex((c) => c.id === id);
  const low = order[at - 1]?.priority,
    high = order[at + 1]?.priority;
  const priority =
    low === undefined ? (high ?? 0) - gap : high === undefined ? low + gap : Math.floor((low + high) / 2);
  const next = order.with(at, { ...order[at], priority });
  const rises = (list: C[]) => list.every((c, i) => i === 0 || list[i - 1].priority < c.priority);
  if (rises(next)) return next;
  if (rises(order.toSpliced(at, 1))) {
    const up = order.slice(),
      down = order.slice();
    up[at] = { ...order[at], priority: low + gap };
    for (let i = at + 1; i < up.length && up[i].priority <= up[i - 1].priority; i++)
      up[i] = { ...up[i], priority: up[i - 1].priority + gap };
    down[at] = { ...order[at], priority: high - gap };
    for (let i = at - 1; i >= 0 && down[i].priority >= down[i + 1].priority; i--)
      down[i] = { ...down[i], priority: down[i + 1].priority - gap };
    const kept = (list: C[]) => list.filter((c, i) => c === order[i]).length;
    return kept(up) < kept(down) ? down : up;
  }
  return order.map((c, i) => (c.priority === (i + 1) * gap ? c : { ...c, priority: (i + 1) * gap }));
}

// together makes a call for each of a list, a few at a time, and tells how many
// are done. It ends at the first failure, once those under way have ended too.
export async function together<T>(list: T[], f: (item: T) => Promise<unknown>, onDone: (done: number) => void) {
  let next = 0,
    done = 0;
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      while (next < list.length && failures.length === 0) {
        try {
          await f(list[next++]);
        } catch (e) {
          failures.push(e);
          return;
        }
        onDone(++done);
      }
    }),
  );
  if (failures.length > 0) throw failures[0];
}

// last gives the priority of a new connection, after all others.
export const last = (conns: { priority: number }[]) => Math.max(0, ...conns.map((c) => c.priority)) + gap;

// prefixesOf returns the valid prefixes of a connection's model ids.
export function prefixesOf(
  c: { provider: string; providerSpecificData: { prefix?: string } },
  catalog: ProviderRow[],
): string[] {
  const { prefix } = c.providerSpecificData;
  return [prefix, catalog.find((p) => p.id === c.provider)?.alias, c.provider].filter((p): p is string => !!p);
}

// servedBy reports whether some connection serves a model id; an id without a
// prefix may belong to any of them.
export const servedBy = (id: string, conns: ConnectionRow[], catalog: ProviderRow[]) =>
  !id.includes("/") || conns.some((c) => c.isActive && prefixesOf(c, catalog).includes(id.split("/")[0]));
