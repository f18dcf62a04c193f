// The native platform of the tests: the server as a process of its own, built from
// test/native with the hooks that tests need. gateway.mjs documents what a host
// exports.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { MiB, resident, watch } from "../isolate.mjs";

const binary = fileURLToPath(new URL(`../../out/weir-test${process.env.RACE ? "-race" : ""}`, import.meta.url));

// limit is what the server may have in memory in the tests that watch it: Go's heap
// grows to twice what lives before garbage is collected.
const limit = 384 * MiB;

// control speaks with the process over a pipe, in lines of JSON. The first has the
// gateway's address, for which serving is called.
function control(pipe, serving) {
  const waiting = new Map();
  let last = 0;
  createInterface({ input: pipe }).on("line", (line) => {
    const { id, ...answer } = JSON.parse(line);
    if (!id) return serving(answer.url);
    waiting.get(id)?.resolve(answer);
    waiting.delete(id);
  });
  pipe.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the gateway has ended"));
  });
  pipe.on("error", () => {});
  return (command, more = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      pipe.write(JSON.stringify({ id: last, command, ...more }) + "\n");
    });
}

// memory watches the server's memory as isolate.mjs does that of a worker.
function memory(call) {
  const sample = async (command) => {
    const { memory: heap } = await call(command);
    return { heap, buffers: 0, linear: 0, total: heap };
  };
  return {
    limit,
    memory: () => sample("stats"),
    collect: () => sample("collect"),
    watch: (ms) => watch(() => sample("stats"), ms),
  };
}

// Ended is the error of a gateway that ends instead of serving.
export class Ended extends Error {}

// running has, by folder, the way to ask a gateway that holds its storage.
const running = new Map();

// place is where the rows of a storage are: its folder, or a database of its own on the server
// that POSTGRES names (scripts/e2e.sh).
const place = (storage) =>
  process.env.POSTGRES
    ? execFileSync(binary, ["database", process.env.POSTGRES, basename(storage)], { encoding: "utf8" }).trim()
    : storage;

export async function start({ env, vendors, storage, proxy = false }) {
  const child = spawn(
    binary,
    [
      "serve",
      "--listen",
      "127.0.0.1:0",
      "--data",
      place(storage),
      ...(proxy ? ["--trusted-proxies", "127.0.0.1"] : []),
    ],
    {
      env: {
        PATH: process.env.PATH,
        HOME: storage,
        ...(process.env.NODE_EXTRA_CA_CERTS ? { SSL_CERT_FILE: process.env.NODE_EXTRA_CA_CERTS } : {}),
        ...(process.env.GORACE ? { GORACE: process.env.GORACE } : {}),
        ...(vendors ? { VENDORS_URL: vendors.url } : {}),
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    },
  );
  const logs = [];
  const ended = once(child, "close");
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => logs.push(line));
  let call;
  const url = await new Promise((resolve, reject) => {
    call = control(child.stdio[3], resolve);
    child.on("error", reject);
    ended.then(([code, signal]) => reject(new Ended(`the gateway ended with ${signal ?? code}:\n${logs.join("\n")}`)));
  });
  running.set(storage, call);

  async function end(signal) {
    child.kill(signal);
    await ended;
    running.delete(storage);
    const bad = logs.findIndex((l) => /^WARNING: DATA RACE|^fatal error:/.test(l));
    if (bad >= 0) throw new Error(logs.slice(bad, bad + 60).join("\n"));
  }
  return {
    url,
    logs,
    stats: async () => ({ ...(await call("stats")), dead: child.exitCode !== null }),
    stacks: async () => (await call("stacks")).stacks,
    memory: memory(call),
    resident: () => resident(child.pid),
    kv: null,
    cron: () => call("cron"),
    faults: (every) => call("faults", { every }),
    from: (address) => ["x-forwarded-for", address],
    kill: () => end("SIGKILL"),
    async close() {
      // Streams that a test leaves open would be waited for.
      const impatient = setTimeout(() => child.kill("SIGKILL"), 3000);
      await end("SIGTERM").finally(() => clearTimeout(impatient));
    },
  };
}

const tool = (args, input) => execFileSync(binary, args, { input, maxBuffer: 1 << 30, encoding: "latin1" });

const decode = ({ machine, key, value }) => ({
  machine,
  key,
  value: Buffer.from(value ?? "", "base64").toString("latin1"),
});
const storedRows = (dir) => JSON.parse(tool(["rows", place(dir)])).map(decode);

export async function rows(dir) {
  const call = running.get(dir);
  return call ? (await call("rows")).rows.map(decode) : storedRows(dir);
}

export function elapse(dir, ms) {
  const at = Date.now() - ms;
  edit(dir, (key, text) => (key === "meta" ? text.replace(/"(pruneAt|alarmAt)":\d{13}/g, `"$1":${at}`) : text));
  tool(["forget-alarms", place(dir)]);
}

export function edit(dir, change) {
  const changed = storedRows(dir).flatMap(({ machine, key, value }) => {
    const now = change(key, value);
    if (now.length !== value.length) throw new Error(`the length of ${key} would change`);
    return now === value ? [] : [{ machine, key, value: Buffer.from(now, "latin1").toString("base64") }];
  });
  tool(["put", place(dir)], JSON.stringify(changed));
}

export const machines = async (dir) => new Set((await rows(dir)).map((r) => r.machine)).size;
