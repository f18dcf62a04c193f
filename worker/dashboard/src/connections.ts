// Connections and providers: their names, addresses and model prefixes.
import type { ConnectionRow, ProviderRow, TestResult } from "./api-types";

// testText returns the result of a connection test as a sentence.
export function testText(r: TestResult): string {
  if (r.ok)
    return r.model ? `Answered in ${r.latencyMs} ms (${r.model}).` : `Returned its models in ${r.latencyMs} ms.`;
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

// originOf returns scheme, host and port of an address: what a saved key is for.
export function originOf(url = ""): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

export type Family = "openai-compatible" | "anthropic-compatible";

// families are the API formats of compatible providers, with the initials of their marks.
export const families: [id: Family, name: string, initials: string][] = [
  ["openai-compatible", "OpenAI-compatible", "{}"],
  ["anthropic-compatible", "Anthropic-compatible", "{A}"],
];

// popular are the providers that most machines start with.
export const popular = ["openai", "anthropic", "gemini", "openrouter", "azure", "bedrock", "groq", "mistral"];

// family returns the format of a compatible provider; "" for a provider of the table.
export const family = (provider: string) =>
  families.find(([id]) => provider.startsWith(`${id}-`) || provider.startsWith(`${id}_`))?.[1] ?? "";

export const providerName = (id: string, list: ProviderRow[]) =>
  list.find((p) => p.id === id)?.name ?? (family(id) || id);

// serverNames returns the names of one's own servers by the ids of their providers: that of the first
// account that has one, "GPU server and 1 more" of two.
export function serverNames(conns: Pick<ConnectionRow, "name" | "provider">[]) {
  const names = new Map<string, string>();
  for (const { provider: id } of conns) {
    const list = conns.filter((c) => c.provider === id);
    const name = family(id) && list.find((c) => c.name)?.name;
    if (name) names.set(id, list.length > 1 ? `${name} and ${list.length - 1} more` : name);
  }
  return names;
}

// suffix returns a random suffix for the id of a compatible provider.
export function suffix(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(6)), (b) => b.toString(16).padStart(2, "0")).join("");
}

// varLabel returns the label of a connection's variable: "Account ID" for "account_id".
export function varLabel(name: string, required: boolean): string {
  const text = name.replaceAll("_", " ").replace(/\bid$/, "ID");
  return text.charAt(0).toUpperCase() + text.slice(1) + (required ? "" : " (optional)");
}

// varsOf returns the names of a provider's variables, without the base URL.
export const varsOf = (p?: ProviderRow) =>
  [...new Set([...(p?.vars ?? []), ...(p?.optionalVars ?? [])])].filter((n) => n !== "baseUrl");

// keyText says whether a connection has a key, with its last characters.
export function keyText(c: ConnectionRow): string {
  if (c.last4) return `${c.authType === "oauth" ? "Token" : "Key"} …${c.last4}`;
  return c.hasKey ? "Key saved" : "No credentials";
}

const reasons: Record<string, string> = {
  rate_limited: "rate limited by the provider",
  unauthorized: "its credentials were refused",
  quota: "out of credit",
  unavailable: "failed several times",
  needs_reauth: "sign in again",
  needs_key: "no usable credentials",
  budget_exceeded: "a budget is used up",
  model_not_priced: "a budget refuses models without a known price",
  rate_limit_exceeded: "the key has reached its limit",
  key_paused: "the key is paused",
  invalid_api_key: "the key has expired",
  scope_required: "the key may not call models",
  pinned: "the request names another account",
  incomplete: "its settings are incomplete",
  no_credential: "no credentials for this model",
  key_unavailable: "its credentials cannot be decrypted",
  needs_credential: "credentials missing",
  inactive: "disabled",
  refused: "the model does not support this request, so no other account is tried",
  not_reached: "an earlier account answers, or ends the request",
  context_length: "the request is too long for the model",
};

// reasonText returns why a connection is not used, see Cooldown and PlanStep.
export const reasonText = (reason: string) => reasons[reason] ?? reason.replaceAll("_", " ");

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
