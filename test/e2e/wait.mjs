// Waiting in tests: for a state, never for a length of time that was enough
// once.

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// until calls probe until its result is truthy, and returns it. It fails after
// ms milliseconds, which only a state that never comes should take.
export async function until(what, probe, ms = 60_000, every = 50) {
  for (const end = performance.now() + ms; ; await sleep(every)) {
    const got = await probe();
    if (got) return got;
    if (performance.now() > end) throw new Error(`${what}: not within ${ms / 1000} s`);
  }
}
