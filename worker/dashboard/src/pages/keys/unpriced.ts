// The attempts of a key whose price is not known.
import type { KeyRow } from "../../api-types";
import { now } from "../../clock";

// unpricedIn returns how many attempts without a price this day or month (UTC) may have: those of a key are
// counted over its whole life.
export const unpricedIn = (k: KeyRow, length: "yyyy-mm-dd" | "yyyy-mm") => {
  const of = (ms: number) => new Date(ms).toISOString().slice(0, length.length);
  return k.lastUsedAt && of(k.lastUsedAt) === of(now()) ? (k.unpricedAttempts ?? 0) : 0;
};
