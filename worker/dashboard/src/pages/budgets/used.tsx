import type { Budget } from "../../api-types";
import { Badge } from "../../ui";
import { lowerBound, money } from "../../amounts";
import { count, number, percent } from "../../format";
import { amount } from "./amount";
import "../../meter.css";

const almostUsed = 0.8; // share from which a budget is marked

// shareOf returns the used share of a budget; it may be over 1.
export const shareOf = (b: Budget) => b.spent / b.limit;

// usedText returns what is used of a budget: "$40.12 of $50.00", "3 of 10 requests".
export const usedText = (b: Budget) =>
  `${b.unit === "usd" ? lowerBound(money, b.spent, b.unpricedCalls) : number(b.spent)} of ${amount(b.unit, b.limit)}`;

// unknownText says of how many requests the cost is not in what is used: "cost of 28 requests unknown".
export const unknownText = (b: Budget) =>
  b.unpricedCalls ? `cost of ${count(b.unpricedCalls, "request")} unknown` : "";

// UsedMeter shows the used share of a budget.
export function UsedMeter({ b }: { b: Budget }) {
  return (
    <meter
      min={0}
      max={1}
      low={0.5}
      high={almostUsed}
      optimum={0}
      value={Math.min(shareOf(b), 1)}
      aria-label={`${b.name}: ${usedText(b)}`}
    />
  );
}

// UsedBadge marks a budget that is exhausted or almost used.
export function UsedBadge({ b }: { b: Budget }) {
  if (b.exhausted) return <Badge kind="bad">Used up</Badge>;
  if (shareOf(b) < almostUsed) return null;
  // Rounded as the amounts beside it are, but a budget with something left is not at 100%.
  return <Badge kind="warn">{percent(Math.min(shareOf(b), 0.999))} used</Badge>;
}
