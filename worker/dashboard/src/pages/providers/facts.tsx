// Facts about an account: since when it works or fails, what it was used for and
// its last error.
import { sentence } from "../../api";
import type { ConnectionRow } from "../../api-types";
import { cents, spent } from "../../amounts";
import { count } from "../../format";
import { Time } from "../../time";
import { hasFailed } from "./health";

// Since shows since when an account has its state, and its last success.
export function Since({ c }: { c: ConnectionRow }) {
  const ready = c.health === "ready";
  return (
    <>
      {!ready && c.healthSince ? (
        <span class="extra">
          Since <Time at={c.healthSince} />
        </span>
      ) : null}
      {c.lastSuccessAt ? (
        <span class="extra">
          Last success <Time at={c.lastSuccessAt} />
        </span>
      ) : null}
    </>
  );
}

// Used shows what an account was used for in the last hour, and its cost.
export function Used({ c }: { c: ConnectionRow }) {
  const { attempts, failedAttempts: failed } = c.lastHour;
  const unpriced = c.unpricedAttempts ?? 0;
  return (
    <>
      <span>
        Last hour: {attempts ? count(attempts, "attempt") : "no attempts"}
        {failed > 0 && <span class="bad">, {failed} failed</span>}
      </span>
      {c.spentMonthUsd > 0 && (
        <span>
          {spent(c.spentTodayUsd, unpriced, cents)} today, {spent(c.spentMonthUsd, unpriced, cents)} this month
        </span>
      )}
      {unpriced > 0 && <span class="extra">{count(unpriced, "attempt")} without a known price this month</span>}
    </>
  );
}

// LastError shows the last error of an account that has failed.
export function LastError({ c }: { c: ConnectionRow }) {
  if (!hasFailed(c)) return null;
  return (
    <p class="small bad error" title={sentence(c.lastError!)}>
      <strong>
        Last error
        {c.healthAt && c.health !== "ready" ? (
          <span class="desk">
            , <Time at={c.healthAt} />
          </span>
        ) : null}
        :
      </strong>{" "}
      {sentence(c.lastError!)}
    </p>
  );
}
