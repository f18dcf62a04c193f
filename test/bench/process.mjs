// The CPU time and memory of a server process, functions that wait for it, and the load
// generator.
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { connect, createServer } from "node:net";

// freePort returns a port below those that the kernel picks for connections: one
// of these could be in use again before the server listens.
export async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const free = await new Promise((resolve) => {
      const s = createServer()
        .once("error", () => resolve(false))
        .listen(port, "127.0.0.1", () => s.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

// until repeats a check every 2 ms, for at most 20 s and while the process lives.
async function until(child, check) {
  const from = performance.now();
  while (performance.now() - from < 20_000 && child.exitCode === null) {
    if (await check()) return true;
    await new Promise((r) => setTimeout(r, 2));
  }
  return false;
}

// listening reports whether the process came to take connections on the port.
export function listening(port, child) {
  return until(
    child,
    () =>
      new Promise((resolve) => {
        const s = connect(port, "127.0.0.1", () => {
          s.destroy();
          resolve(true);
        }).on("error", () => resolve(false));
      }),
  );
}

// answering reports whether the process came to answer GET /health: with 200, or
// with anything at all for a worker that has no such route.
export function answering(url, child, any = false) {
  return until(child, async () => {
    try {
      const res = await fetch(url + "/health");
      await res.text();
      return any || res.status === 200;
    } catch {
      return false;
    }
  });
}

// usage returns how to read a process's CPU time in seconds, by the kernel's
// scheduler, and its memory in bytes. threads() has the CPU time of each thread, the
// first one first; idle() waits until none of them has run for 200 ms.
export function usage(pid) {
  const tasks = (file) =>
    readdirSync(`/proc/${pid}/task`).flatMap((id) => {
      try {
        return [readFileSync(`/proc/${pid}/task/${id}/${file}`, "utf8")];
      } catch {
        return []; // the thread has ended
      }
    });
  const threads = () => tasks("schedstat").map((t) => Number(t.split(" ")[0]) / 1e9);
  const cpu = () => threads().reduce((a, b) => a + b, 0);
  return {
    cpu,
    threads,
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024,
    async idle() {
      for (let before = cpu(), still = 0; still < 10; ) {
        await new Promise((r) => setTimeout(r, 20));
        const now = cpu(),
          runs = tasks("stat").some((t) => t.split(") ")[1][0] === "R");
        still = now > before || runs ? 0 : still + 1;
        before = now;
      }
    },
  };
}

// onCore prefixes a command so that it runs on one core only; core may be undefined.
export const onCore = (core, command, args) =>
  core === undefined ? [command, args] : ["taskset", ["-c", String(core), command, ...args]];

// runLoad runs the load generator at a path and returns its report.
export function runLoad(
  program,
  url,
  {
    n,
    c = 32,
    seconds = 20,
    body = null,
    headers = {},
    ends = "",
    pieces = 1,
    equal = false,
    patient = false,
    core,
    method = "POST",
  },
) {
  const args = ["-url", url, "-n", n, "-c", c, "-seconds", seconds, "-ends", ends, "-pieces", pieces].map(String);
  if (equal) args.push("-equal");
  if (patient) args.push("-patient");
  if (body) args.push("-method", method);
  const all = body ? { "content-type": "application/json", ...headers } : headers;
  for (const [k, v] of Object.entries(all)) args.push("-header", `${k}: ${v}`);
  return new Promise((resolve, reject) => {
    const child = spawn(...onCore(core, program, args), { stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (d) => {
      text += d;
    });
    child.on("close", (code) => (code ? reject(new Error(`load ended with ${code}`)) : resolve(JSON.parse(text))));
    child.stdin.end(body ?? "");
  });
}
