// Entry points of the worker: requests, the cron, and the shell of the Machine
// object. Everything else is Go.
import { DurableObject } from "cloudflare:workers";
import { handle, run } from "./bridge.mjs";

const CALL = 0,
  ALARM = 1,
  CRON = 2; // as in bridge/run.go

export default {
  fetch: handle,
  scheduled(event, env) {
    return run(CRON, env, null, "", event.cron, null);
  },
};

// How long a caller waits for a refresh, in ms. The refresh itself continues up to
// the time limit of the call to the token endpoint.
const refreshMs = 10_000;

// slow is the answer to a caller whose wait has ended.
const slow = new TextEncoder().encode(
  JSON.stringify({
    error: {
      message: "the token is being refreshed",
      type: "server_error",
      code: "refresh_in_progress",
      retryAfterMs: 2000,
    },
  }),
);

// Machine is one tenant's object. Identical refreshes that overlap are one
// call: a token endpoint that rotates must not be asked twice, and a call that
// may have rotated the token must not be given up with its caller.
export class Machine extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.flights = new Map();
  }

  call(name, verb, body) {
    if (verb !== "refresh") return run(CALL, this.env, this.ctx.storage, name, verb, body);
    const key = new TextDecoder().decode(body);
    let flight = this.flights.get(key);
    if (!flight) {
      flight = this.#refresh(key, name, body);
      this.flights.set(key, flight);
    }
    return flight;
  }

  // #refresh runs one refresh to completion, and answers within refreshMs.
  #refresh(key, name, body) {
    const over = new AbortController();
    const done = run(CALL, this.env, this.ctx.storage, name, "refresh", body).finally(() => {
      over.abort();
      this.flights.delete(key);
    });
    this.ctx.waitUntil(done.catch(() => {}));
    const late = scheduler.wait(refreshMs, { signal: over.signal }).then(
      () => ({ status: 503, body: slow }),
      () => done,
    );
    return Promise.race([done, late]);
  }

  alarm() {
    return run(ALARM, this.env, this.ctx.storage, this.ctx.id.name ?? "", "", null);
  }
}
