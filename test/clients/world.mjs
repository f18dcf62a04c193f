// The gateway with an account of every upstream family, for the tests with tools.
import { start as startUpstream } from "../upstream/server.mjs";
import { admin, compatible, start } from "../e2e/gateway.mjs";
import { families } from "./families.mjs";
import { model } from "./model.mjs";

function connection(up, id, apiKey) {
  if (id === "up") return compatible(up, { apiKey });
  if (id === "an") return { ...compatible(up, { prefix: "an", apiKey }), provider: "anthropic-compatible-0123abcd" };
  return { provider: id, apiKey, ...(id === "bedrock" ? { providerSpecificData: { region: "eu-central-1" } } : {}) };
}

// world starts the gateway and the upstream. machine(name) creates a machine with an
// account of each family, whose credential is "FAMILY-NAME-0123456789".
export async function world() {
  const up = await startUpstream();
  const script = model(families.map((f) => f.model.slice(f.model.indexOf("/") + 1)));
  up.script = script;
  const gateway = await start({ vendors: up });
  const operator = admin(gateway);
  return {
    up,
    script,
    gateway,
    operator,
    account: (family, name) => `${family}-${name}-0123456789`,
    async machine(name) {
      const me = await operator.machine();
      for (const { id } of families)
        await operator.connect(me.machineId, connection(up, id, `${id}-${name}-0123456789`));
      return me;
    },
    async close() {
      await gateway.close();
      await up.close();
    },
  };
}
