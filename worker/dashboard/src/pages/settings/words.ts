// The audit log in words.
import type { AuditRow } from "../../api-types";

// what names the records that actions are about, by the first part of their path.
const what: Record<string, string> = {
  providers: "account",
  keys: "API key",
  combos: "combo",
  budgets: "budget",
  machines: "machine",
  captures: "captured bodies",
  destinations: "notification or export",
  invitations: "invitation",
  people: "person",
};

// sentences are the actions that their method and path do not describe.
const sentences: Record<string, string> = {
  "sign-in": "Signed in to the dashboard",
  refresh: "Account needs a new sign-in",
  adopt: "Restored the seed",
  "POST /api/keys/{id}/rotate": "Rotated API key",
  "POST /api/providers/{id}/restore": "Restored account",
  "POST /api/oauth/{provider}/authorize": "Started sign-in to",
  "POST /api/oauth/{provider}/device": "Started sign-in to",
  "POST /api/oauth/{provider}/poll": "Continued sign-in to",
  "POST /api/oauth/{provider}/cancel": "Canceled sign-in to",
  "GET /oauth/callback": "Signed in to account",
  "POST /api/destinations/{id}/test": "Tested notification or export",
  "POST /api/setup": "Created a set-up command",
  "POST /setup/claim": "Created API key with a set-up command",
  "POST /api/device/{code}": "Decided on the sign-in of a device",
  "POST /api/device/token": "Created API key for a device",
  "PUT /api/models/alias": "Saved a model alias",
  "DELETE /api/models/alias": "Deleted a model alias",
  "POST /api/models/custom": "Saved a custom model",
  "DELETE /api/models/custom": "Deleted a custom model",
  "POST /api/models/disabled": "Disabled models",
  "DELETE /api/models/disabled": "Enabled models",
  "PATCH /api/settings": "Changed the settings",
  "PATCH /api/machines/{id}": "Renamed the machine",
  "POST /api/machines/{id}/restore": "Restored the machine",
  "PUT /api/people/{id}": "Set the role of",
  "DELETE /api/people/{id}": "Removed person",
  "POST /api/compare": "Compared secrets with a file",
  "POST /api/export": "Exported an encrypted backup",
  "POST /api/import": "Imported a backup",
};

const verbs: Record<string, string> = {
  GET: "Read",
  POST: "Created",
  PUT: "Changed",
  PATCH: "Changed",
  DELETE: "Deleted",
};

// fieldNames are the fields that their JSON name does not describe.
const fieldNames: Record<string, string> = {
  apiKey: "API key",
  baseUrl: "base URL",
  isActive: "enabled",
  providerSpecificData: "provider settings",
  rpm: "requests per minute",
  dailyMax: "requests per day",
  tpm: "tokens per minute",
  maxParallel: "concurrent requests",
  expiresAt: "expiry",
  replace: "replaced what the backup lacks",
  webhookUrl: "webhook",
};

// spaced splits a name of the API: "custom models" of "customModels".
const spaced = (name: string) =>
  name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll(/[-_/]+/g, " ")
    .toLowerCase();

// actionText returns an action in words: "Changed API key".
export function actionText(action: string): string {
  const known = sentences[action];
  if (known) return known;
  const [method, path] = action.split(" /api/");
  if (path === undefined) return spaced(action);
  const parts = path.split("/").filter((part) => !part.startsWith("{"));
  const [kind, ...rest] = parts;
  return [verbs[method] ?? method, what[kind] ?? spaced(kind), ...rest.map(spaced)].join(" ");
}

// actorText returns who did it, with the names of GET /api/audit.
export function actorText(actor: string, names: Record<string, string>): string {
  if (actor === "operator") return "Operator";
  if (actor === "system") return "Gateway";
  if (actor === "seed") return "Seed document";
  const person = actor.replace(/^person:/, "");
  if (person !== actor) return names[person] ?? `Person ${person.slice(0, 8)}…`;
  const id = actor.replace(/^key:/, "");
  return `Key ${names[id] ?? `${id.slice(0, 8)}… (revoked)`}`;
}

// targetText returns what it was done to, "" without a target.
export function targetText(e: AuditRow, names: Record<string, string>): string {
  if (!e.target) return "";
  if (names[e.target]) return names[e.target];
  return /^[0-9a-z]{12,}$/.test(e.target) ? `${e.target.slice(0, 8)}…` : e.target;
}

// fieldText returns the name of a field in words.
export const fieldText = (name: string) => fieldNames[name] ?? spaced(name);

// kinds are the choices of the filter.
export const kinds: [kind: string, name: string][] = [
  ["", "All"],
  ["providers", "Accounts"],
  ["keys", "API keys"],
  ["combos", "Combos"],
  ["budgets", "Budgets"],
  ["models", "Models"],
  ["settings", "Settings"],
  ["people", "People"],
  ["invitations", "Invitations"],
  ["setup", "Setup commands"],
  ["device", "Device sign-ins"],
  ["oauth", "Account sign-ins"],
  ["sign-in", "Dashboard sign-ins"],
  ["import", "Imports"],
  ["export", "Exports"],
  ["captures", "Captured bodies"],
  ["destinations", "Notifications and exports"],
];

export const actors: [actor: string, name: string][] = [
  ["", "All"],
  ["operator", "Operator"],
  ["key", "API keys"],
  ["person", "People"],
  ["system", "Gateway"],
];
