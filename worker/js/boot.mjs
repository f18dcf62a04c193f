// Boots the Go program: what its runtime asks of JavaScript, as far as the
// platform has it.
import module from "./app.wasm";
import { SEED } from "./seed.mjs";
import "./wasm_exec.js";

const decoder = new TextDecoder();

// Numbers of values in wasm_exec.js, and the one property of the Go object with
// a name of this length.
const goObject = 6;
const nullValue = 2;
const pendingEvent = "_pendingEvent";

let booting = true; // until the first event

// booted is called once the first instance is ready for events.
export function booted() {
  booting = false;
}

// boot runs the program up to its event loop and returns the Go object. host has
// the functions that the program imports; context is what
// github.com/syumai/workers reads as globalThis.context; enter runs a function
// inside the program.
//
// At global scope the platform has neither clock nor randomness, so both are
// stubbed until the first event: the build writes the seed of hashes, and no secret
// depends on it.
//
// clock.now is the time, in ms since 1970, that the program has; enter sets it to 0
// for the first reading to take it from the platform. Between two events the
// platform's clock stands still anyway, and asking for it costs a µs each time.
export function boot(host, context, clock, enter) {
  const go = new Go();
  const js = go.importObject.gojs;
  const realRandom = js["runtime.getRandomData"];
  let last = 1;
  js["runtime.getRandomData"] = (sp) => {
    if (!booting) return realRandom(sp);
    sp >>>= 0;
    const at = go.mem.getUint32(sp + 8, true);
    const n = go.mem.getUint32(sp + 16, true);
    const out = new Uint8Array(go._inst.exports.mem.buffer, at, n);
    for (let i = 0; i < n; i++) out[i] = SEED[i % SEED.length];
  };
  // The Go runtime aborts if the clock does not advance, or is at zero.
  js["runtime.nanotime1"] = (sp) => {
    if (clock.now === 0) clock.now = Date.now();
    last = Math.max(last + 1000, clock.now * 1e6); // whole microseconds: exact in a double
    go.mem.setUint32((sp >>> 0) + 8, last >>> 0, true);
    go.mem.setUint32((sp >>> 0) + 12, last / 4294967296, true);
  };
  js["runtime.walltime"] = (sp) => {
    if (clock.now === 0) clock.now = Date.now();
    const now = clock.now;
    const seconds = Math.floor(now / 1000);
    sp >>>= 0;
    go.mem.setUint32(sp + 8, seconds, true);
    go.mem.setUint32(sp + 12, seconds / 4294967296, true);
    go.mem.setInt32(sp + 16, (now - seconds * 1000) * 1e6, true);
  };
  // No timers: one would fire in the I/O context of another request.
  js["runtime.scheduleTimeoutEvent"] = (sp) => {
    go.mem.setInt32((sp >>> 0) + 16, 1, true);
  };
  js["runtime.clearTimeoutEvent"] = () => {};
  // The runtime asks for a pending callback at every event; there is one only
  // while a promise of syscall/js settles.
  const valueGet = js["syscall/js.valueGet"];
  js["syscall/js.valueGet"] = (sp) => {
    sp >>>= 0;
    if (
      go._pendingEvent !== null ||
      go.mem.getUint32(sp + 8, true) !== goObject ||
      go.mem.getUint32(sp + 24, true) !== pendingEvent.length
    )
      return valueGet(sp);
    go.mem.setUint32(sp + 36, 0x7ff80000, true);
    go.mem.setUint32(sp + 32, nullValue, true);
  };
  // The output of a runtime that crashes may contain data of a request: only the
  // runtime's own fixed texts are logged.
  let line = "";
  js["runtime.wasmWrite"] = (sp) => {
    sp >>>= 0;
    const at = Number(go.mem.getBigInt64(sp + 16, true));
    const n = go.mem.getInt32(sp + 24, true);
    line += decoder.decode(new Uint8Array(go._inst.exports.mem.buffer, at, n));
    const lines = line.split("\n");
    line = lines.pop();
    for (const l of lines) {
      if (/^(fatal error: [a-z ,-]+|runtime: goroutine stack exceeds \d+-byte limit)$/.test(l))
        console.error("go: " + l);
      else if (l.startsWith("panic: ")) console.error("go: panic");
    }
  };
  go.exit = () => {};
  go._resume = () => enter(() => go._inst.exports.resume());
  go.run(new WebAssembly.Instance(module, { ...go.importObject, host }), context);
  return go;
}
