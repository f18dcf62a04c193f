// The audit log in words, those that the command line has too: verbs of methods, kinds of records by the
// first part of their path, sentences for actions that method and path do not describe, fields, and actors.
import type { AuditRow } from "../../api-types";
import words from "../../../../../server/cli/audit.json" with { type: "json" };

const { verbs, kinds: nouns, sentences, fields, actors: others }: Record<string, Record<string, string>> = words;

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
  return [verbs[method] ?? method, nouns[kind] ?? spaced(kind), ...rest.map(spaced)].join(" ");
}

// actorText returns who did it, with the names of GET /api/audit.
export function actorText(actor: string, names: Record<string, string>): string {
  if (others[actor]) return others[actor];
  const person = actor.replace(/^person:/, "");
  if (person !== actor) return names[person] || `Person ${person.slice(0, 8)}…`;
  const id = actor.replace(/^key:/, "");
  return `Key ${names[id] ?? `${id.slice(0, 8)}… (revoked)`}`;
}

// targetText returns what it was done to, "" without a target.
export function targetText(e: AuditRow, names: Record<string, string>): string {
  if (!e.target) return "";
  if (names[e.target] || others[e.target]) return names[e.target] || others[e.target];
  return /^[0-9a-z]{12,}$/.test(e.target) ? `${e.target.slice(0, 8)}…` : e.target;
}

// fieldText returns a field in words: "model price of openai/gpt-5" of "modelPrices.openai/gpt-5". A route and a text
// are not the name of one.
export function fieldText(name: string): string {
  if (name.includes(" ")) return name;
  const [, field, of] = /^(.*?)\.(.*)$/.exec(name) ?? [];
  return of ? `${fieldText(field)} of ${of}` : (fields[name] ?? spaced(name));
}

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
  ["sign-in", "Sign-ins with a key"],
  ["import", "Imports"],
  ["export", "Exports"],
  ["captures", "Stored prompts and answers"],
  ["destinations", "Notifications and exports"],
];

export const actors: [actor: string, name: string][] = [
  ["", "All"],
  ["operator", "Operator"],
  ["key", "API keys"],
  ["person", "People"],
  ["system", "Gateway"],
];
