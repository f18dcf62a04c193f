// Runs the native server, as `weir serve` does, on a data directory of its own.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { answering, freePort, onCore, usage } from "./process.mjs";
import { root } from "./workerd.mjs";

export const binary = join(root, "build/weir");

// serve starts the server; core pins it to one core.
//
//	data      the data directory, which outlives the server
//	database  the URL of a database in its place
//
// The result is as that of workerd.mjs; startMs is until /health answers 200.
export async function serve(data, { env = {}, core, database = data } = {}) {
  const port = await freePort(),
    url = `http://127.0.0.1:${port}`;
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const from = performance.now();
  const child = spawn(...onCore(core, binary, ["serve", "--listen", `127.0.0.1:${port}`, "--data", database]), {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env.PATH, HOME: data, PRICES_URL: "off", ...env },
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (t) => {
    if (complaints.length < 10_000) complaints += t;
  });
  if (!(await answering(url, child))) throw new Error(`weir did not start\n${complaints}`);
  return {
    url,
    startMs: performance.now() - from,
    ...usage(child.pid),
    complaints: () => complaints,
    close: () =>
      new Promise((resolve) => {
        child.once("exit", resolve);
        child.kill("SIGTERM");
      }),
  };
}
