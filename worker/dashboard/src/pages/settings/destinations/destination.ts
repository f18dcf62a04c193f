import type { Machine } from "../../../api";
import { type Preset, presetOf } from "./kinds";

// Destination is a row of GET /api/destinations.
export interface Destination {
  id: string;
  name: string;
  kind: string;
  enabled: boolean;
  /** those of its kind that are not secret */
  settings: Record<string, string>;
  /** the names of the secret settings that are set */
  secrets: string[];
  /** of its address, which is not shown */
  host?: string;
  /** absent: the default ones */
  events?: string[];
  /** of a webhook, only in the answer for one destination */
  signingSecret?: string;
  generation: number;
  status: "active" | "paused" | "failing" | "disabled";
  disabledReason?: string;
  disabledAt?: number;
  lastSuccessAt?: number;
  lastError?: string;
  lastErrorAt?: number;
  /** deliveries */
  waiting: number;
  nextTryAt?: number;
  /** entries that were not delivered */
  dropped: number;
}

// EventRow is an event that notifications tell of.
export interface EventRow {
  name: string;
  /** is told unless others are chosen */
  default?: boolean;
  description: string;
}

// DestinationList is the body of GET /api/destinations.
export interface DestinationList {
  data: Destination[];
  events: EventRow[];
}

// Delivery is a row of GET /api/destinations/{id}/deliveries.
export interface Delivery {
  id: string;
  title?: string;
  state: "waiting" | "dropped";
  at: number;
  nextTryAt?: number;
  tries: number;
  error?: string;
}

// TestResult is the body of POST /api/destinations/{id}/test.
export interface TestResult {
  delivered: boolean;
  error?: string;
}

// Form is what is typed into the form of a destination.
export interface Form {
  preset: string;
  name: string;
  values: Record<string, string>;
  events: string[];
}

export const defaultEvents = (events: EventRow[]) => events.filter((e) => e.default).map((e) => e.name);

// formOf returns the form of a stored destination.
export function formOf(d: Destination, events: EventRow[]): Form {
  const preset = presetOf(d.kind, d.settings);
  return {
    preset: preset?.id ?? "",
    name: d.name,
    values: preset?.typed?.(d.settings) ?? { ...d.settings },
    events: d.events?.length ? d.events : defaultEvents(events),
  };
}

// save stores a destination. Secrets that are not typed stay as they are. A destination with
// the default events has those of later versions too.
export async function save(machine: Machine, d: Destination | null, preset: Preset, form: Form, events: EventRow[]) {
  const filled = Object.fromEntries(
    preset.inputs.map(({ name, initial = "" }) => [name, (form.values[name] ?? initial).trim()]),
  );
  const settings: Record<string, string> = preset.values?.(filled) ?? filled;
  for (const { name, secret } of preset.inputs) if (d && secret && !settings[name]) delete settings[name];
  const chosen = form.events.join() === defaultEvents(events).join() ? [] : form.events;
  const body = { name: form.name.trim() || preset.title, settings, ...(preset.events && { events: chosen }) };
  if (d) return machine.put(`/destinations/${d.id}`, body, d.generation);
  return machine.post("/destinations", { kind: preset.kind, ...body });
}
