// The CPU time and memory of a server process, and functions that wait for it.
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:net";

const ticks = 100; // of the kernel's clock in a second, as /proc counts CPU time

export function freePort() {
  return new Promise((resolve) => {
    const s = createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => resolve(port));
    });
  });
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

// usage returns how to read a process's CPU time in seconds and its memory in bytes.
export function usage(pid) {
  return {
    cpu() {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
      return (Number(fields[11]) + Number(fields[12])) / ticks;
    },
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024,
  };
}

// onCore prefixes a command so that it runs on one core only; core may be undefined.
export const onCore = (core, command, args) =>
  core === undefined ? [command, args] : ["taskset", ["-c", String(core), command, ...args]];
