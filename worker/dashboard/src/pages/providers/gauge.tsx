import type { Quota, QuotaWindow } from "../../api-types";
import { duration, number, percent } from "../../format";
import "../../meter.css";

// low is the share under which the gateway prefers other accounts of equal priority.
const low = 0.05;

// unitOf returns what a window counts: "requests", "input tokens"; "usage" for the
// windows of subscriptions, which have names such as 5h and primary.
function unitOf(name: string): string {
  const unit = name.replace(/-?(per-)?(\d+-)?(second|minute|hour|day|week|month)$/, "").replaceAll("-", " ");
  if (unit === "req") return "requests";
  return /token|request/.test(unit) ? unit : "usage";
}

// title returns the name of a window: "Usage, 5 h", "Requests, 24 h".
export function title(w: QuotaWindow): string {
  const unit = unitOf(w.name);
  return unit[0].toUpperCase() + unit.slice(1) + (w.spanSeconds ? `, ${duration(w.spanSeconds * 1000)}` : "");
}

// tightest returns the window of which the least is left, or undefined.
export const tightest = (q?: Quota) => q?.windows.toSorted((a, b) => a.left - b.left)[0];

// Gauge shows what is left of one limit of an account.
export function Gauge({ w, now }: { w: QuotaWindow; now: number }) {
  const wait = (w.resetsAt ?? 0) - now;
  return (
    <span class="row tight wrap small">
      <span>
        {title(w)}
        {w.model && (
          <>
            {" "}
            <code>{w.model}</code>
          </>
        )}
      </span>
      <meter aria-label={`${title(w)}${w.model ? ` of ${w.model}` : ""}: left`} low={low} optimum={1} value={w.left} />
      <span class="muted">
        {percent(w.left)} left
        {w.limit ? ` (${number(w.remaining ?? 0)} of ${number(w.limit)})` : ""}
        {wait > 0 && `, resets in ${duration(wait)}`}
      </span>
    </span>
  );
}
