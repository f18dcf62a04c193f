// The parts of a machine's object that need no program: refreshes are joined,
// repeated questions for a snapshot are answered, and an object is placed near its
// machine's traffic.
import { REFRESH_MS, STILL_REFRESHING } from "./contract.mjs";

const stillRefreshing = new TextEncoder().encode(STILL_REFRESHING);

// Refreshes joins identical refreshes that overlap: a token endpoint that rotates
// tokens must not be called twice, and a call that may have rotated the token must
// not be aborted when its caller leaves. Nothing is pending once a refresh has
// ended: a timer would keep the object alive, and billed.
export class Refreshes {
  #byBody = new Map();

  // join returns the answer to a refresh within REFRESH_MS. refresh begins it, unless
  // one for the same body is under way. keep keeps the object alive until it ends.
  join(body, refresh, keep) {
    const key = new TextDecoder().decode(body);
    let answer = this.#byBody.get(key);
    if (!answer) {
      answer = this.#begin(key, refresh, keep);
      this.#byBody.set(key, answer);
    }
    return answer;
  }

  #begin(key, refresh, keep) {
    const ended = new AbortController();
    const done = refresh().finally(() => {
      ended.abort();
      this.#byBody.delete(key);
    });
    keep(done.catch(() => {}));
    const late = scheduler.wait(REFRESH_MS, { signal: ended.signal }).then(
      () => ({ status: 503, body: stillRefreshing }),
      () => done,
    );
    return Promise.race([done, late]);
  }
}

// Confirmations repeats the answers to questions for a snapshot as long as nothing
// else has called the object, which is the only writer of its machine. The program is
// not entered for them.
export class Confirmations {
  #answers = new Map(); // by the question
  #others = 0; // calls under way that may change something

  // ask answers a question, with answer if it must.
  async ask(body, answer) {
    const question = new TextDecoder().decode(body);
    const known = this.#answers.get(question);
    if (known) return known;
    const answers = this.#answers;
    const got = await answer();
    const same = got.status === 200 && got.body?.byteLength <= maxConfirmation;
    if (same && answers === this.#answers && this.#others === 0) {
      if (answers.size >= maxQuestions) answers.clear();
      answers.set(question, got);
    }
    return got;
  }

  // around runs a call that may change the machine.
  async around(call) {
    this.#answers = new Map();
    this.#others++;
    try {
      return await call();
    } finally {
      this.#others--;
      this.#answers = new Map();
    }
  }
}

const maxConfirmation = 256; // bytes of an answer that has nothing new
const maxQuestions = 16;

// hintOf returns the location hint for the object of a machine that a request from
// this place creates: undefined lets the platform choose. cf is request.cf. Hints
// are documented at developers.cloudflare.com/durable-objects/reference/data-location.
export function hintOf(cf) {
  const east = Number(cf?.longitude);
  switch (cf?.continent) {
    case "NA":
      return east < -100 ? "wnam" : "enam";
    case "EU":
      return east > 19 ? "eeur" : "weur";
    case "AS":
      return middleEast.has(cf.country) ? "me" : "apac";
    case "SA":
      return "sam";
    case "AF":
      return "afr";
    case "OC":
      return "oc";
  }
  return undefined;
}

const middleEast = new Set("AE BH IL IQ IR JO KW LB OM PS QA SA SY TR YE".split(" "));
