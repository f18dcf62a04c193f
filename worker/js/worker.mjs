// Entry points of the worker: requests, the cron, and the class of the Machine
// object. Everything else is Go.
import { DurableObject } from "cloudflare:workers";
import { handle, run } from "./bridge.mjs";
import { ALARM, CRON, OBJECT_CALL } from "./contract.mjs";

export default {
  fetch: handle,
  scheduled(event, env) {
    return run(CRON, env, null, "", event.cron, null);
  },
};

// How long a caller waits for a refresh, in ms. The refresh itself continues up to
// the time limit of the call to the token endpoint.
const refreshMs = 10_000;

// stillRefreshing is the answer to a caller that has waited refreshMs.
const stillRefreshing = new TextEncoder().encode(
  JSON.stringify({
    error: {
      message: "the token is being refreshed",
      type: "server_error",
      code: "refresh_in_progress",
      retryAfterMs: 2000,
    },
  }),
);

// Machine is one tenant's object. Identical refreshes that overlap are one call: a
// token endpoint that rotates tokens must not be called twice, and a call that may
// have rotated the token must not be aborted when its caller leaves.
export class Machine extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.refreshes = new Map();
  }

  call(name, verb, body) {
    if (verb !== "refresh") return run(OBJECT_CALL, this.env, this.ctx.storage, name, verb, body);
    const key = new TextDecoder().decode(body);
    let refresh = this.refreshes.get(key);
    if (!refresh) {
      refresh = this.#refresh(key, name, body);
      this.refreshes.set(key, refresh);
    }
    return refresh;
  }

  // #refresh runs one refresh to completion, and answers within refreshMs.
  #refresh(key, name, body) {
    const ended = new AbortController();
    const done = run(OBJECT_CALL, this.env, this.ctx.storage, name, "refresh", body).finally(() => {
      ended.abort();
      this.refreshes.delete(key);
    });
    this.ctx.waitUntil(done.catch(() => {}));
    const late = scheduler.wait(refreshMs, { signal: ended.signal }).then(
      () => ({ status: 503, body: stillRefreshing }),
      () => done,
    );
    return Promise.race([done, late]);
  }

  alarm() {
    return run(ALARM, this.env, this.ctx.storage, this.ctx.id.name ?? "", "", null);
  }
}
