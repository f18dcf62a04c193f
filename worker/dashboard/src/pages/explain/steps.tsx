import type { Plan, PlanStep } from "../../api-types";
import { reasonText } from "../../connections";
import { count, duration } from "../../format";
import { to } from "../../route";
import { Section } from "../../layout";
import { amount } from "../budgets/amount";
import { failures } from "../combos/policy";
import { changed } from "../requests/changed";
import { Badge, Cut, Empty, Notice } from "../../ui";

// Steps shows a plan: the accounts that are tried, in order, and those that are
// skipped.
export function Steps({ plan, machineId }: { plan: Plan; machineId: string }) {
  const tried = plan.plan.filter((s) => s.try > 0 && !s.skipped),
    skipped = plan.plan.filter((s) => s.try === 0 || s.skipped);
  // A budget is named again only where it reserves another amount.
  const budgets = tried.map((s, n) =>
    s.budgets.filter((b) => !tried[n - 1]?.budgets.some((o) => o.id === b.id && o.reserves === b.reserves)),
  );
  const cooldowns = skipped.map((s) => s.cooldownMs).filter((ms) => ms > 0);
  return (
    <Section
      title="Plan"
      intro={
        tried.length > 0
          ? `Accounts are tried in this order until one answers, up to ${count(plan.maxAttempts, "attempt")}.`
          : undefined
      }
    >
      <p class="hidden" role="status">
        {tried.length} of {count(plan.plan.length, "account")} would be tried.
      </p>
      {plan.billable && (
        <Notice kind="warn">
          This request is billed when it is sent, so it is retried only if the provider refused it.
        </Notice>
      )}
      {plan.session && (
        <p class="small">
          {recognized(plan.session)}. Its requests stay with one account while all accounts of the model are ready.
        </p>
      )}
      {plan.plan.length === 0 && <Empty title="No account serves this model" />}
      {plan.plan.length > 0 && tried.length === 0 && (
        <Notice kind="warn">
          No account is available, so the request would fail.
          {cooldowns.length > 0 && ` The first account is ready in ${duration(Math.min(...cooldowns))}.`}
        </Notice>
      )}
      {tried.length > 0 && (
        <ol class="steps" aria-label="Attempts">
          {tried.map((s, n) => (
            <li key={`${s.try}`} class={s.try > plan.maxAttempts ? "muted" : ""}>
              <span class="place" aria-hidden="true">
                {s.try}
              </span>
              <div>
                <p>
                  <a href={to(machineId, "providers", s.connectionId)}>
                    <Cut>{s.connectionName || s.provider}</Cut>
                  </a>{" "}
                  as <code>{s.model}</code> {s.home && <Badge kind="accent">Account of the session</Badge>}{" "}
                  {s.trial && <Badge kind="warn">Trial</Badge>}{" "}
                  {s.lowQuota && <Badge kind="warn">Limit almost used up</Badge>}{" "}
                  {s.try > plan.maxAttempts && <Badge>Never reached</Badge>}
                </p>
                <p class="small muted">
                  <code>{s.upstream}</code>
                </p>
                {s.trial && (
                  <p class="small">After its cooldown, it receives one request at a time until one succeeds.</p>
                )}
                {s.translated.length > 0 && (
                  <p class="small">
                    Translated fields: <code>{s.translated.join(", ")}</code>
                  </p>
                )}
                {s.cacheMarks.length > 0 && (
                  <p class="small">
                    Cache markers added: <code>{s.cacheMarks.join(", ")}</code>
                  </p>
                )}
                {s.nextAfter.length > 0 && (
                  <p class="small">
                    The next model is tried after:{" "}
                    {s.nextAfter.map((of) => failures.find(([id]) => id === of)?.[1].toLowerCase() ?? of).join(", ")}
                  </p>
                )}
                {budgets[n].length > 0 && (
                  <p class="small">
                    Budgets:{" "}
                    {budgets[n].map((b, i) => (
                      <span key={b.id}>
                        {i > 0 && "; "}
                        <Cut>{b.name}</Cut> (reserves {amount(b.unit, b.reserves)} of at most {amount(b.unit, b.left)}{" "}
                        left)
                      </span>
                    ))}
                  </p>
                )}
                <Changed dropped={s.dropped} />
              </div>
            </li>
          ))}
        </ol>
      )}
      {skipped.length > 0 && (
        <>
          <h3>Skipped</h3>
          <ul class="plain" aria-label="Skipped accounts">
            {skipped.map((s) => (
              <li key={s.connectionId + s.model}>
                <a href={to(machineId, "providers", s.connectionId)}>
                  <Cut>{s.connectionName || s.provider}</Cut>
                </a>{" "}
                as <code>{s.model}</code>: {refusedText(s) || reasonText(s.skipped)}
                {s.budgets.some((b) => b.refused) && (
                  <>
                    {" "}
                    (<bdi>{s.budgets.find((b) => b.refused)?.name}</bdi>)
                  </>
                )}
                {s.cooldownMs > 0 && `, ready in ${duration(s.cooldownMs)}`}
              </li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

// refusedText says why a budget that has something left refuses a request, "" otherwise.
function refusedText({ budgets }: PlanStep): string {
  const b = budgets.find((b) => b.refused);
  if (b?.refused !== "budget_exceeded" || b.left <= 0) return "";
  return `it could ${b.unit === "usd" ? "cost" : "use"} ${amount(b.unit, b.reserves)}, ${amount(b.unit, b.left)} of a budget is left`;
}

// Changed names the fields of the request that are not sent, and those that weir sets.
function Changed({ dropped }: { dropped: string[] }) {
  const [notSent, set] = changed(dropped);
  return (
    <>
      {notSent && (
        <p class="small">
          Fields not sent: <code>{notSent}</code>
        </p>
      )}
      {set && (
        <p class="small">
          Set by weir: <code>{set}</code>
        </p>
      )}
    </>
  );
}

// recognized returns a sentence on how a session was recognized.
function recognized(by: string) {
  if (by === "session") return "Sticky session of the request in the list";
  if (by === "messages") return "Sticky session, recognized by its first messages";
  return (
    <>
      Sticky session, recognized by <code>{by}</code>
    </>
  );
}
