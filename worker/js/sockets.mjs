// TCP connections of the Go program, for calls through a proxy. Each belongs to
// one call, and is closed with it at the latest.
import { connect } from "cloudflare:sockets";
import { END, NETWORK, NO_TLS, OK, TIMEOUT } from "./codes.mjs";

export class Sockets {
  constructor(inst) {
    this.inst = inst;
    this.table = new Map(); // number → Connection
    this.next = 1;
  }

  // dial opens a connection to "host:port". ms limits all that happens on it.
  dial(op, call, address, ms) {
    const id = this.next++,
      at = address.lastIndexOf(":");
    const hostname = address.slice(0, at).replace(/^\[|\]$/g, ""),
      port = +address.slice(at + 1);
    const c = { call, limit: null, late: false, socket: null, reader: null, writer: null };
    this.table.set(id, c);
    c.stopped = new Promise((_, reject) => {
      c.stop = reject;
    });
    c.stopped.catch(() => {});
    if (ms > 0)
      c.limit = call.limit(ms, () => {
        c.late = true;
        c.stop();
        this.drop(c);
      });
    this.step(
      op,
      c,
      async () => {
        this.take(c, connect({ hostname, port }, { secureTransport: "starttls", allowHalfOpen: false }));
        await c.socket.opened;
        return [OK, id];
      },
      () => this.close(id),
    );
  }

  take(c, socket) {
    c.socket = socket;
    socket.closed.catch(() => {});
    c.reader = socket.readable.getReader();
    c.writer = socket.writable.getWriter();
    c.writer.closed.catch(() => {});
    c.reader.closed.catch(() => {});
  }

  // step does one thing on a connection and tells Go how it ended.
  step(op, c, act, failed) {
    if (!c) return void queueMicrotask(() => this.inst.emit(op, NETWORK, 0));
    Promise.race([act(), c.stopped]).then(
      ([kind, status, body]) => this.inst.emit(op, kind, status, "", body),
      (e) => {
        failed?.();
        // Some builds of the platform tell of a failed handshake only when TLS is used.
        this.inst.emit(op, c.late ? TIMEOUT : /tls handshake/i.test(e?.message) ? NO_TLS : NETWORK, 0);
      },
    );
  }

  // tls goes on in TLS; the certificate must be valid for host.
  tls(op, id, host) {
    const c = this.table.get(id);
    this.step(op, c, async () => {
      c.reader.releaseLock();
      c.writer.releaseLock();
      this.take(c, c.socket.startTls({ expectedServerHostname: host }));
      await c.socket.opened;
      return [OK, 0];
    });
  }

  read(op, id) {
    const c = this.table.get(id);
    this.step(op, c, async () => {
      const { value, done } = await c.reader.read();
      return done ? [END, 0] : [OK, 0, value];
    });
  }

  write(op, id, bytes) {
    const c = this.table.get(id);
    this.step(op, c, async () => {
      await c.writer.write(bytes);
      return [OK, 0];
    });
  }

  close(id) {
    const c = this.table.get(id);
    if (!c) return;
    this.table.delete(id);
    if (c.limit) c.call.lift(c.limit);
    this.drop(c);
  }

  drop(c) {
    try {
      c.socket?.close().catch(() => {});
    } catch {
      /* closed already */
    }
  }

  // abandon closes all: the program that used them is gone.
  abandon() {
    for (const id of [...this.table.keys()]) this.close(id);
  }
}
