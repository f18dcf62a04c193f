// The order in which connections are tried: their priorities.

const gap = 10; // between the priorities of neighbours, so that most moves change one connection alone

// placed returns the connections in their new order, in which the one with the id
// was moved, with increasing priorities. If there is no free priority between
// its neighbours, those on the shorter side are moved too; if priorities are
// equal, all are assigned again. Connections whose priority is unchanged stay
// the same objects.
export function placed<C extends { id: string; priority: number }>(order: C[], id: string): C[] {
  const at = order.findIndex((c) => c.id === id);
  const low = order[at - 1]?.priority,
    high = order[at + 1]?.priority;
  const priority =
    low === undefined ? (high ?? 0) - gap : high === undefined ? low + gap : Math.floor((low + high) / 2);
  const next = order.with(at, { ...order[at], priority });
  const rises = (list: C[]) => list.every((c, i) => i === 0 || list[i - 1].priority < c.priority);
  if (rises(next)) return next;
  if (rises(order.toSpliced(at, 1))) {
    const up = order.slice(),
      down = order.slice();
    up[at] = { ...order[at], priority: low + gap };
    for (let i = at + 1; i < up.length && up[i].priority <= up[i - 1].priority; i++)
      up[i] = { ...up[i], priority: up[i - 1].priority + gap };
    down[at] = { ...order[at], priority: high - gap };
    for (let i = at - 1; i >= 0 && down[i].priority >= down[i + 1].priority; i--)
      down[i] = { ...down[i], priority: down[i + 1].priority - gap };
    const unchanged = (list: C[]) => list.filter((c, i) => c === order[i]).length;
    return unchanged(up) < unchanged(down) ? down : up;
  }
  return order.map((c, i) => (c.priority === (i + 1) * gap ? c : { ...c, priority: (i + 1) * gap }));
}

// together calls f for every item, six at a time, and reports how many are done.
// After a failure it starts no more calls, waits for the running ones and throws.
export async function together<T>(list: T[], f: (item: T) => Promise<unknown>, onDone: (done: number) => void) {
  let next = 0,
    done = 0;
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      while (next < list.length && failures.length === 0) {
        try {
          await f(list[next++]);
        } catch (e) {
          failures.push(e);
          return;
        }
        onDone(++done);
      }
    }),
  );
  if (failures.length > 0) throw failures[0];
}

// last returns the priority of a new connection: that of the last one, so that the
// strategy of the machine decides between accounts that were not moved.
export const last = (conns: { priority: number }[]) => Math.max(0, ...conns.map((c) => c.priority));

// sharing says which of a provider's connections is called first. It is "" where there
// is no choice: of one connection, and of several compatible servers.
export function sharing(conns: { provider: string; priority: number }[], strategy: string): string {
  if (conns.length < 2 || conns.some((c) => c.provider !== conns[0].provider)) return "";
  if (strategy === "round-robin") return "The accounts take turns, whatever their order.";
  const priorities = new Set(conns.map((c) => c.priority)).size;
  if (priorities === conns.length || strategy === "priority") return "Tried from top to bottom.";
  if (priorities > 1) return "Tried from top to bottom; accounts of equal priority share the requests.";
  const sticky = strategy === "affinity" || strategy === "weighted";
  return `These accounts share the requests${sticky ? "; a conversation stays with one of them" : ""}. The arrows set an order.`;
}
