import type { Machine } from "../../api";
import type { RequestRow } from "../../api-types";
import { to } from "../../route";
import { Time } from "../../time";
import { Badge } from "../../ui";
import { outcome } from "../requests/outcome";

// Failures lists the latest requests that failed, each with a link to it.
export function Failures({ machine, rows }: { machine: Machine; rows: RequestRow[] }) {
  if (rows.length === 0) return <p class="muted">No failed requests.</p>;
  return (
    <ul class="plain small">
      {rows.map((r) => {
        const result = outcome(r),
          reason = r.failed?.at(-1)?.text || r.error;
        return (
          <li key={r.seq}>
            <p class="row tight wrap">
              <Badge kind={result.kind}>{result.text}</Badge>
              <a href={to(machine.id, "requests", r.id)}>
                <bdi>{r.asked || r.endpoint}</bdi>
              </a>
              <span class="muted">
                <Time at={r.at} />
              </span>
            </p>
            {reason && (
              <p>
                <bdi>{reason}</bdi>
              </p>
            )}
          </li>
        );
      })}
    </ul>
  );
}
