// The memory of a worker's isolate, as the debugger of workerd reports it. The
// limit of the platform is on the sum: JavaScript's heap, the buffers outside
// of it, and the linear memory of the Go program. Stream buffers of workerd
// itself are in none of them; the process's memory shows those.
import { readFileSync, readdirSync } from "node:fs";

export const MiB = 1 << 20;
export const limit = 128 * MiB; // of an isolate

// debug opens the debugger at the address of a workerd's inspector.
//
//	host    where the inspector listens
//	stats   returns {memory}, the bytes of linear memory, by a request
//
// The result has memory(), in bytes {heap, buffers, linear, total}, collect(),
// which collects garbage first, watch(ms) and close(). watch samples at that
// interval until stop(), which returns the largest sample.
export async function debug(host, stats) {
  const [{ webSocketDebuggerUrl }] = await (await fetch(`http://${host}/json/list`)).json();
  const ws = new WebSocket(webSocketDebuggerUrl),
    waiting = new Map();
  await new Promise((resolve, reject) => {
    ws.onopen = resolve;
    ws.onerror = () => reject(new Error("no debugger"));
  });
  ws.onmessage = ({ data }) => {
    const m = JSON.parse(data);
    waiting.get(m.id)?.(m);
    waiting.delete(m.id);
  };
  let last = 0;
  // The debugger answers only while the isolate runs, so calls keep it busy.
  const call = (method) =>
    new Promise((resolve, reject) => {
      const id = ++last,
        from = performance.now();
      waiting.set(id, (m) => {
        if (m.error) reject(new Error(`${method}: ${m.error.message}`));
        else resolve(m.result);
      });
      ws.send(JSON.stringify({ id, method }));
      (async () => {
        while (waiting.has(id)) {
          if (performance.now() - from > 30_000) throw new Error(`${method}: no answer`);
          await stats();
          await new Promise((r) => setTimeout(r, 20));
        }
      })().catch(reject);
    });
  await call("HeapProfiler.enable");

  async function memory() {
    const [{ totalSize, embedderHeapUsedSize = 0, backingStorageSize = 0 }, { memory: linear }] = await Promise.all([
      call("Runtime.getHeapUsage"),
      stats(),
    ]);
    const heap = totalSize + embedderHeapUsedSize;
    return { heap, buffers: backingStorageSize, linear, total: heap + backingStorageSize + linear };
  }
  return {
    memory,
    async collect() {
      await call("HeapProfiler.collectGarbage");
      return memory();
    },
    watch: (ms) => watch(memory, ms),
    watchLive: (ms) => watch(() => call("HeapProfiler.collectGarbage").then(memory), ms),
    close() {
      ws.close();
    },
  };
}

// watch takes a sample every ms until stop, which returns the one with the largest total.
export function watch(sample, ms = 50) {
  let most = { total: 0 },
    on = true;
  const ended = (async () => {
    while (on) {
      const now = await sample();
      if (now.total > most.total) most = now;
      await new Promise((r) => setTimeout(r, ms));
    }
  })();
  return {
    async stop() {
      on = false;
      await ended;
      return most;
    },
  };
}

// shown is such a figure for a message.
export function shown(m) {
  return (
    Object.entries(m)
      .map(([name, n]) => `${name} ${(n / MiB).toFixed(1)}`)
      .join(", ") + " MiB"
  );
}

// workers returns the processes of workerd that a process started.
export function workers(parent = process.pid) {
  const list = [];
  for (const pid of readdirSync("/proc").filter((n) => /^\d+$/.test(n))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8"),
        [name, rest] = stat.slice(stat.indexOf("(") + 1).split(") ");
      if (name === "workerd" && +rest.split(" ")[1] === parent) list.push(+pid);
    } catch {
      /* has ended */
    }
  }
  return list;
}

// resident is the memory of a process, in bytes.
export const resident = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024;
