// Entry points of the worker: requests, the cron, and the class of the Machine
// object. Everything else is Go.
import { DurableObject } from "cloudflare:workers";
import { handle, run } from "./bridge.mjs";
import { ALARM, CRON, OBJECT_CALL } from "./contract.mjs";
import { healthOf } from "./health.mjs";
import { Confirmations, Refreshes } from "./object.mjs";

export default {
  fetch(request, env, ctx) {
    return healthOf(request) ?? handle(request, env, ctx);
  },
  scheduled(event, env) {
    return run(CRON, env, null, "", event.cron, null);
  },
};

// Machine is one tenant's object.
export class Machine extends DurableObject {
  #refreshes = new Refreshes();
  #confirmations = new Confirmations();

  call(name, verb, body) {
    const call = () => run(OBJECT_CALL, this.env, this.ctx.storage, name, verb, body);
    if (verb === "snapshot") return this.#confirmations.ask(body, call);
    if (verb !== "refresh") return this.#confirmations.around(call);
    return this.#refreshes.join(
      body,
      () => this.#confirmations.around(call),
      (done) => this.ctx.waitUntil(done),
    );
  }

  // The platform runs an alarm again that has thrown.
  async alarm() {
    const { status } = await this.#confirmations.around(() =>
      run(ALARM, this.env, this.ctx.storage, this.ctx.id.name ?? "", "", null),
    );
    if (status >= 500) throw new Error("the alarm has failed");
  }
}
