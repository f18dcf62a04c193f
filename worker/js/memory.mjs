// Waiting for memory, which Go grants: the budget is in pkg/wire/memory.

const againMs = 100;
const waitMs = 60_000;

// noMemory is what a reader rejects with that waited in vain.
export const noMemory = Symbol("no memory");

// reserver returns the function by which the reader of a body waits until the body may
// have total bytes, of expected ones, -1 if unknown. onWait is called meanwhile. It reports whether
// the body may.
export function reserver(inst, op) {
  return async (total, expected, onWait) => {
    for (let waited = 0; ; waited += againMs) {
      if (inst.dead) return false;
      const may = inst.enter(() => inst.x.weir_reserve(op, total, expected));
      if (may > 0) return true;
      if (may < 0 || waited >= waitMs) return false;
      onWait?.();
      await scheduler.wait(againMs);
    }
  };
}

// pieceReady passes a piece to Go once there is memory for it, as streams.push does.
// Without memory in time, out.waits remains set.
export async function pieceReady(streams, id, piece, out) {
  for (let waited = 0; waited < waitMs; waited += againMs) {
    await scheduler.wait(againMs);
    out.waits = false;
    const bytes = streams.push(id, piece, out);
    if (!out.waits || streams.inst.dead) return bytes;
  }
  return null;
}
