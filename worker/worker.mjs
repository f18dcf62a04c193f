// Entry points of the worker: requests, the cron, and the shell of the Machine
// object. Everything else is Go.
import { DurableObject } from "cloudflare:workers";
import { handle, run } from "./bridge.mjs";

const CALL = 0, ALARM = 1, CRON = 2; // as in bridge/run.go

export default {
  fetch: handle,
  scheduled(event, env) { return run(CRON, env, null, "", event.cron, null); },
};

// Machine is one tenant's object. Identical refreshes that overlap are one
// call: a token endpoint that rotates must not be asked twice.
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
      flight = run(CALL, this.env, this.ctx.storage, name, verb, body).finally(() => this.flights.delete(key));
      this.flights.set(key, flight);
    }
    return flight;
  }

  alarm() { return run(ALARM, this.env, this.ctx.storage, this.ctx.id.name ?? "", "", null); }
}
