import type { Budget } from "../../api-types";
import { money } from "../../amounts";
import { number } from "../../format";

// amount writes an amount of a budget's unit: "$1.50", "2,000 tokens".
export function amount(unit: Budget["unit"], n: number): string {
  if (unit === "usd") return money(n);
  return `${number(n)} ${n === 1 ? unit.slice(0, -1) : unit}`;
}

export const unitNames: Record<Budget["unit"], string> = { usd: "US dollars", tokens: "Tokens", requests: "Requests" };
