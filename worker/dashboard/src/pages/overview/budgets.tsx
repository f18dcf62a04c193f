import type { Machine } from "../../api";
import type { Budget } from "../../api-types";
import { count } from "../../format";
import { to } from "../../route";
import { Time } from "../../time";
import { shareOf, unknownText, UsedBadge, UsedMeter, usedText } from "../budgets/used";
import { Cut } from "../../ui";

const maxShown = 5;

// Budgets shows the budgets of which the most is used.
export function Budgets({ machine, rows }: { machine: Machine; rows: Budget[] }) {
  if (rows.length === 0)
    return (
      <p class="muted">
        No budgets yet. <a href={to(machine.id, "budgets")}>Limit what requests may cost</a>.
      </p>
    );
  const more = rows.length - maxShown;
  return (
    <>
      <ul class="plain small">
        {rows
          .toSorted((a, b) => shareOf(b) - shareOf(a))
          .slice(0, maxShown)
          .map((b) => {
            return (
              <li key={b.id}>
                <p class="row tight wrap between">
                  <strong>
                    <Cut>{b.name}</Cut>
                  </strong>
                  <UsedBadge b={b} />
                </p>
                <p class="row tight wrap">
                  <UsedMeter b={b} />
                  <span title={unknownText(b)}>{usedText(b)}</span>
                  {b.resetsAt && (
                    <span class="muted">
                      resets <Time at={b.resetsAt} />
                    </span>
                  )}
                </p>
              </li>
            );
          })}
      </ul>
      {more > 0 && <p class="muted small">{count(more, "more budget")}.</p>}
    </>
  );
}
