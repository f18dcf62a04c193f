// The platform that the tests run on, and the tests that hold on one alone.
import * as runner from "node:test";

export const platform = process.env.PLATFORM || "workerd";
if (!["workerd", "native"].includes(platform)) throw new Error(`PLATFORM is workerd or native, not ${platform}`);

// host is how the gateway is started there and its storage is read: see
// gateway.mjs and storage.mjs.
export const host = await import(`./hosts/${platform}.mjs`);

// reasons are why a test holds on one platform alone. The table in
// docs/reference/platforms.md has the same.
const reasons = {
  bridge: "the bridge between Go and JavaScript, and what JavaScript reads of a request",
  calls: "the platform limits the calls of one request",
  commands: "commands of build.sh that start the other",
  connections: "the platform chooses the connection of a call",
  kv: "replicas and seeds in KV",
  settings: "the native server creates missing secrets, and does not start with wrong settings",
  objects: "objects that fail apart from the gateway",
};

// only returns node's functions of tests on that platform. Elsewhere the tests
// are skipped, with the reason, and no hook runs.
export function only(on, reason) {
  if (!reasons[reason]) throw new Error(`no reason ${reason}`);
  if (on === platform) return runner;
  const skip = `${on} only: ${reasons[reason]}`;
  const none = () => {};
  return {
    test: (name) => runner.test(name, { skip }, none),
    describe: (name) => runner.describe(name, { skip }, none),
    before: none,
    after: none,
    beforeEach: none,
  };
}
