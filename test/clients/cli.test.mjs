// Tools as npm carries them, set up by the command that a person pastes and run without
// a terminal against the gateway, in a network that has the loopback interface alone
// (test/loopback). A connection to anywhere else fails the test.
//
// SOAK=1 runs every tool over every family of upstreams. Without it, workerd has each
// tool run tools once.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { clis, scenarios } from "./clis.mjs";
import { record } from "./compatibility.mjs";
import { families } from "./families.mjs";
import { world } from "./world.mjs";

const soak = process.env.SOAK === "1";
const brief = !soak && process.env.PLATFORM !== "native";
const names = process.env.LOOPBACK_NAMES; // the file to which loopback appends host names
const skip = names ? false : "connections can be counted under Linux with namespaces only, see scripts/clients.sh";
let w;
before(async () => {
  if (!skip) w = await world();
});
after(() => w?.close());

// outside returns what left for other addresses so far: the number of connections that
// the kernel refused, and the host names that were resolved.
function outside() {
  const [fields, values] = readFileSync("/proc/self/net/snmp", "utf8")
    .split("\n")
    .filter((l) => l.startsWith("Ip:"))
    .map((l) => l.split(" "));
  const v6 = /Ip6OutNoRoutes\s+(\d+)/.exec(readFileSync("/proc/self/net/snmp6", "utf8"))?.[1] ?? 0;
  return {
    connections: Number(values[fields.indexOf("OutNoRoutes")]) + Number(v6),
    names: readFileSync(names, "utf8").split("\n").filter(Boolean),
  };
}

// place creates a home folder in which the tool is set up for a model, as a person does.
async function place(cli, me, model) {
  const home = await mkdtemp(join(tmpdir(), "weir-cli-")),
    work = join(home, "work");
  await mkdir(work);
  const env = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", NO_COLOR: "1", no_proxy: "*", ...cli.env };
  const { command } = await w.operator.call("POST", `/${me.machineId}/api/setup`, {
    tool: cli.id,
    model,
    smallModel: model,
  });
  await promisify(execFile)("sh", ["-c", command.sh], { env });
  await cli.prepare?.(home);
  return { work, env, close: () => rm(home, { recursive: true, force: true, maxRetries: 5 }) };
}

// start runs the tool. The result has interrupt(), which does what Ctrl-C does, and done:
// {code, out}, the text of both outputs.
function start(cli, at, options) {
  const [file, ...args] = cli.command(options);
  const child = spawn(file, args, { cwd: at.work, env: at.env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (d) => (out += d));
  const send = (signal) => {
    try {
      process.kill(-child.pid, signal); // the group: some tools start others
    } catch (e) {
      if (e.code !== "ESRCH") throw e;
    }
  };
  const timer = setTimeout(() => send("SIGKILL"), 120_000);
  const done = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code: signal ?? code, out });
    });
  });
  return { interrupt: () => send("SIGINT"), done };
}

test("a connection to another address is refused and counted", { skip }, async () => {
  const before = outside();
  for (const host of ["weir.example.com", "2001:db8::1"]) {
    const refused = await new Promise((resolve) => connect(443, host).on("error", resolve));
    assert.match(`${refused.code ?? refused.errors?.map((e) => e.code)}`, /ENETUNREACH/);
  }
  const now = outside();
  assert.deepEqual(now.names.slice(before.names.length), ["weir.example.com"]);
  assert.equal(now.connections - before.connections, 2);
});

for (const [i, cli] of clis.entries())
  describe(`${cli.name} ${cli.version}`, { skip }, () => {
    const name = `${cli.id}${i}`;
    let me;
    before(async () => {
      if (!skip) me = await w.machine(name);
    });
    // play lets the tool do what a scenario is about, and fails if it has connected to
    // another address.
    async function play(scenario, family) {
      const at = await place(cli, me, family.model);
      const before = outside();
      w.script.clear();
      const begin = (options) => start(cli, at, { url: w.gateway.url, ...options });
      try {
        await scenario.play({
          cli,
          model: family.model,
          seen: () => w.script.seen.filter((q) => q.account === w.account(family.id, name)),
          begin,
          run: (options) => begin(options).done,
          // ask runs the tool to its end, which must be a good one, and returns its outputs.
          async ask(prompt, more = {}) {
            const { code, out } = await begin({ prompt, ...more }).done;
            assert.equal(code, 0, out);
            return out;
          },
          read: (file) => readFile(join(at.work, file), "utf8"),
          async write(file, data) {
            await writeFile(join(at.work, file), data);
            return join(at.work, file);
          },
        });
        assert.deepEqual(w.script.faults, []);
        const now = outside();
        assert.deepEqual(now.names.slice(before.names.length), [], "names of other hosts");
        assert.equal(now.connections - before.connections, 0, "connections to other hosts");
      } finally {
        await at.close();
      }
    }
    for (const family of families) {
      const main = family.id === cli.families[0];
      if (!soak && !cli.families.includes(family.id)) continue;
      for (const [id, scenario] of Object.entries(scenarios)) {
        if (scenario.when && !scenario.when(cli)) continue;
        if (!soak && id !== "tools" && !(scenario.short && main)) continue;
        if (brief && !(id === "tools" && main)) continue;
        test(`${scenario.title} over ${family.name}`, async () => {
          const passed = await play(scenario, family).then(
            () => true,
            (e) => e,
          );
          record("run", cli, family, id, passed === true);
          if (passed !== true) throw passed;
        });
      }
    }
  });
