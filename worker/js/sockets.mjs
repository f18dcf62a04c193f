// TCP connections of the Go program, for calls through a proxy. Each belongs to
// one call and is closed with it at the latest.
import { connect } from "cloudflare:sockets";
import { END_OF_BODY, NETWORK, NO_TLS, OK, TIMEOUT } from "./contract.mjs";

export class Sockets {
  constructor(inst) {
    this.inst = inst;
    this.table = new Map(); // number → { call, deadline, late, socket, reader, writer, stopped, stop }
    this.next = 1;
  }

  get size() {
    return this.table.size;
  }

  // dial opens a connection to "host:port". ms limits its whole lifetime.
  dial(op, call, address, ms) {
    const id = this.next++;
    const at = address.lastIndexOf(":");
    const hostname = address.slice(0, at).replace(/^\[|\]$/g, "");
    const port = +address.slice(at + 1);
    const c = { call, deadline: null, late: false, socket: null, reader: null, writer: null };
    this.table.set(id, c);
    c.stopped = new Promise((_, reject) => {
      c.stop = reject;
    });
    c.stopped.catch(() => {});
    if (ms > 0)
      c.deadline = call.addDeadline(ms, () => {
        c.late = true;
        c.stop();
        this.drop(c);
      });
    this.step(
      op,
      c,
      async () => {
        this.#attach(c, connect({ hostname, port }, { secureTransport: "starttls", allowHalfOpen: false }));
        await c.socket.opened;
        return { handle: id };
      },
      () => this.close(id),
    );
  }

  // attach makes socket the one that c reads and writes.
  #attach(c, socket) {
    c.socket = socket;
    socket.closed.catch(() => {});
    c.reader = socket.readable.getReader();
    c.writer = socket.writable.getWriter();
    c.writer.closed.catch(() => {});
    c.reader.closed.catch(() => {});
  }

  // step runs one operation on a connection and reports to Go how it ended.
  step(op, c, run, failed) {
    if (!c) return void queueMicrotask(() => this.inst.emit(op, NETWORK));
    Promise.race([run(), c.stopped]).then(
      ({ outcome = OK, body = null, handle = 0 }) => {
        if (!this.inst.emit(op, outcome, 0, "", body, handle)) this.close(handle);
      },
      (e) => {
        failed?.();
        // Some builds of the platform report a failed handshake only when TLS is used.
        this.inst.emit(op, c.late ? TIMEOUT : /tls handshake/i.test(e?.message) ? NO_TLS : NETWORK);
      },
    );
  }

  // tls continues in TLS; the certificate must be valid for host.
  tls(op, id, host) {
    const c = this.table.get(id);
    this.step(op, c, async () => {
      c.reader.releaseLock();
      c.writer.releaseLock();
      this.#attach(c, c.socket.startTls({ expectedServerHostname: host }));
      await c.socket.opened;
      return {};
    });
  }

  read(op, id) {
    const c = this.table.get(id);
    this.step(op, c, async () => {
      const { value, done } = await c.reader.read();
      return done ? { outcome: END_OF_BODY } : { body: value };
    });
  }

  write(op, id, bytes) {
    const c = this.table.get(id);
    this.step(op, c, async () => {
      await c.writer.write(bytes);
      return {};
    });
  }

  close(id) {
    const c = this.table.get(id);
    if (!c) return;
    this.table.delete(id);
    if (c.deadline) c.call.removeDeadline(c.deadline);
    this.drop(c);
  }

  drop(c) {
    try {
      c.socket?.close().catch(() => {});
    } catch {
      /* closed already */
    }
  }

  // abandon closes all connections: the program that used them has ended.
  abandon() {
    for (const id of [...this.table.keys()]) this.close(id);
  }
}
