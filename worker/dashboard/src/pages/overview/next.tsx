import type { ComponentChildren } from "preact";
import type { Machine } from "../../api";
import type { Budget, ConnectionRow } from "../../api-types";
import { count } from "../../format";
import { to } from "../../route";
import { shareOf, usedText } from "../budgets/used";
import { Cut } from "../../ui";

const almostUsed = 0.8; // share of a budget

// Known is what the overview has loaded.
export interface Known {
  conns: ConnectionRow[];
  /** accounts that need their owner, and what is wrong with them */
  needs: { id: string; name: string; badge: string; query?: string }[];
  budgets: Budget[];
  hasBudgets: boolean;
  /** number of its targets of notifications, undefined if the gateway has no such route */
  targets?: number;
  /** attempts of the week without a known price */
  unpriced: number;
}

interface Step {
  text: ComponentChildren;
  /** label of its link */
  action: string;
  page: string[];
  query?: string;
  /** it is about a fault */
  fault?: boolean;
}

// nextStep returns the one thing to do next, the most urgent first, or null.
export function nextStep(k: Known): Step | null {
  const [broken] = k.needs;
  if (broken)
    return {
      text: (
        <>
          <Cut>{broken.name}</Cut>: {broken.badge.toLowerCase()}.
          {k.needs.length > 1 &&
            ` ${count(k.needs.length - 1, "other account")} ${k.needs.length === 2 ? "needs" : "need"} attention too.`}
        </>
      ),
      action: "Fix it",
      page: ["providers", broken.id],
      query: broken.query,
      fault: true,
    };
  const budget = k.budgets.toSorted((a, b) => shareOf(b) - shareOf(a)).find((b) => shareOf(b) >= almostUsed);
  if (budget)
    return {
      text: (
        <>
          Budget <Cut>{budget.name}</Cut> {budget.exhausted ? "is used up" : "is almost used"}: {usedText(budget)}.
        </>
      ),
      action: "Change the budget",
      page: ["budgets"],
      fault: budget.exhausted,
    };
  const active = k.conns.filter((c) => c.isActive),
    untested = active.filter((c) => !c.lastSuccessAt);
  if (untested.length > 0)
    return {
      text: `${count(untested.length, "account")} ${untested.length === 1 ? "has" : "have"} not answered yet.`,
      action: "Test",
      page: untested.length === 1 ? ["providers", untested[0].id] : ["providers"],
    };
  if (k.unpriced > 0)
    return {
      text: `${count(k.unpriced, "attempt")} in the last 7 days without a price, so the spend shown is too low. The price of your own server can be 0.`,
      action: "Set prices",
      page: ["models"],
      query: "view=prices",
    };
  if (active.length === 1)
    return {
      text: "Add a second account, so that requests go on when the first one fails.",
      action: "Add an account",
      page: ["providers", "add"],
    };
  if (k.targets === 0)
    return {
      text: "Get a message when an account fails.",
      action: "Set up notifications",
      page: ["settings", "notifications"],
    };
  if (k.hasBudgets && k.budgets.length === 0)
    return { text: "Limit what requests may cost.", action: "Create a budget", page: ["budgets"] };
  return null;
}

// Next shows the one thing to do next.
export function Next({ machine, known }: { machine: Machine; known: Known }) {
  const step = nextStep(known);
  return (
    <section class={`card next row between wrap ${step?.fault ? "warn" : ""}`} aria-label="Next step">
      <p>
        <strong>Next step</strong> {step?.text ?? "Nothing to do. Everything works."}
      </p>
      {step && (
        <a class="button main" href={to(machine.id, ...(step.page as [string])) + (step.query ? `?${step.query}` : "")}>
          {step.action}
        </a>
      )}
    </section>
  );
}
