// Amounts as text.
import { locale } from "./format.ts";

const dollar = { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol" } as const;

// Write writes an amount or another number; an amount is rounded down if that is asked for.
export type Write = (n: number, down?: boolean) => string;

const inDollars = (usd: number, down: boolean, digits: Intl.NumberFormatOptions) =>
  down // what a sum of floats lacks is added
    ? (usd * (1 + 1e-12)).toLocaleString(locale, { ...dollar, ...digits, roundingMode: "floor" })
    : usd.toLocaleString(locale, { ...dollar, ...digits });

// dollars returns US dollars with at least two decimals and at most as many as given.
export const dollars = (usd: number, most = 2, least = 2, down = false) =>
  inDollars(usd, down, { minimumFractionDigits: least, maximumFractionDigits: most });

// money returns US dollars; amounts below one dollar have up to four decimals, very small
// ones two digits.
export const money: Write = (usd, down = false) =>
  usd > 0 && usd < 0.0001
    ? inDollars(usd, down, { maximumSignificantDigits: 2 })
    : dollars(usd, usd > 0 && usd < 1 ? 4 : 2, 2, down);

// lowerBound writes what is known of an amount: "≥ $0.12" if the cost of some calls is not known.
export const lowerBound = (write: Write, n: number, unknown = 0) => (unknown > 0 ? `≥ ${write(n, true)}` : write(n));

// A known figure of nothing is 0 or $0.00. "–" is one that is not known, such as the cost of calls without a
// price, or that does not exist, such as the success rate of no requests. In the list of requests the cost of an
// answer without a price is "Unknown", since others have none.

// spent returns what some calls have cost: "–" if that of none is known.
export const spent = (usd: number, unknown = 0, write = money) =>
  unknown > 0 && usd === 0 ? "–" : lowerBound(write, usd, unknown);

// moneyLike returns what writes the amounts of a column, all with the same decimals: four
// if none reaches a dollar. Smaller amounts are as money writes them.
export function moneyLike(amounts: number[]): Write {
  const digits = Math.max(0, ...amounts) < 1 ? 4 : 2,
    least = 1 / 10 ** digits;
  return (usd, down) => (usd < least ? money(usd, down) : dollars(usd, digits, digits, down));
}

// cents writes amounts with two decimals, those below a cent as money does.
export const cents = moneyLike([1]);

// price returns the price of a unit, such as a million tokens: "$3.00", "free".
export const price = (usd: number) => (usd === 0 ? "free" : dollars(usd, 6));
