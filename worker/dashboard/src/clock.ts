// The time of the gateway. The clock of a computer may be wrong by days, and what is compared with
// times of the gateway, or sent to it, must not be.
export const maxSkewMs = 60_000; // by which the clocks may differ

let skew = 0; // ms, by which the gateway's clock is ahead

// now returns the time in Unix milliseconds.
export const now = () => Date.now() + skew;

// follow reads the clock of the gateway from an answer. Its field date has whole seconds.
export function follow(answer: Response) {
  const ahead = Date.parse(answer.headers.get("date") ?? "") - Date.now();
  skew = Math.abs(ahead) > maxSkewMs ? ahead : 0;
}
