// The functions that the Go program imports. worker/bridge/host.go declares them.
import { BINARY_MESSAGE, DELETED_ROW, MISSING, NETWORK, OK, OUTLIVE, STORAGE_FAULT } from "./contract.mjs";
import { errorResponse } from "./request.mjs";
import { Sending } from "./streams.mjs";
import { zoneOffset } from "./zone.mjs";

const encoder = new TextEncoder();

// The signatures of identity providers: the name of the algorithm, and what importKey and verify
// take with it.
const signatures = {
  RS256: ["RSASSA-PKCS1-v1_5", { hash: "SHA-256" }],
  PS256: ["RSA-PSS", { hash: "SHA-256" }, { saltLength: 32 }],
  ES256: ["ECDSA", { namedCurve: "P-256" }, { hash: "SHA-256" }],
  EdDSA: ["Ed25519"],
};

// parseHeader splits "name\nvalue\n…" into pairs.
function parseHeader(text) {
  if (!text) return [];
  const parts = text.split("\n");
  const pairs = new Array(parts.length >> 1);
  for (let i = 0; i < pairs.length; i++) pairs[i] = [parts[2 * i], parts[2 * i + 1]];
  return pairs;
}

// cut returns the first line of a text and the rest.
function cut(text) {
  const at = text.indexOf("\n");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

// withStorage runs use with the storage of the object that a call is for.
function withStorage(inst, callID, use) {
  const { storage } = inst.calls.get(callID);
  try {
    return use(storage.kv, storage);
  } catch (e) {
    console.error(JSON.stringify({ level: "error", msg: "object storage", error: String(e?.message).slice(0, 120) }));
    return STORAGE_FAULT;
  }
}

// keep stores text for the function copy and returns its size in UTF-8.
function keep(inst, text) {
  inst.result = encoder.encode(text);
  return inst.result.byteLength;
}

// imports returns the functions for an instance. An exception in one must not end
// the instance: it fails only the operation, or the answer, that it was for.
export function imports(inst) {
  const host = functions(inst);
  // Without spreading its arguments, which would allocate at every operation; none
  // has more than twelve.
  const guard = (name, fail) => {
    const run = host[name];
    host[name] = (a, b, c, d, e, f, g, h, i, j, k, l) => {
      try {
        return run(a, b, c, d, e, f, g, h, i, j, k, l);
      } catch (err) {
        console.error(JSON.stringify({ level: "error", msg: "host call", name, error: err?.name }));
        return fail?.(a);
      }
    };
  };
  for (const name of [
    "fetch",
    "object",
    "pause",
    "read",
    "read_all",
    "gather",
    "digest",
    "dial",
    "ws_dial",
    "ws_next",
    "ws_relayed",
  ])
    guard(name, (op) => queueMicrotask(() => inst.emit(op, NETWORK)));
  for (const name of ["discard", "keep", "done", "socket_close", "ws_close", "ws_evict", "ws_relay"]) guard(name);
  const unanswered = (callID) => {
    const call = inst.calls.get(callID);
    call?.answer(errorResponse(call.request, 500, "the answer could not be sent", "server_error", null));
    return 0;
  };
  guard("respond", unanswered);
  guard("ws_accept", unanswered);
  guard("ws_send", () => 1);
  guard("ws_silent", () => 0);
  return host;
}

function functions(inst) {
  return {
    // fetch makes one upstream call. head is "METHOD\nURL\nname\nvalue…".
    fetch(op, callID, headAt, headLen, bodyAt, bodyLen, stream, headerMs, totalMs, idleMs, maxBody, flags) {
      const call = inst.calls.get(callID);
      const head = inst.text(headAt, headLen);
      const i = head.indexOf("\n");
      const j = head.indexOf("\n", i + 1);
      const url = head.slice(i + 1, j > 0 ? j : undefined);
      const init = { method: head.slice(0, i), redirect: "manual" };
      if (j > 0) init.headers = parseHeader(head.slice(j + 1));
      const owned = bodyLen > 0 || inst.streams.owns(stream);
      const sending = bodyLen || stream ? new Sending() : null;
      if (bodyLen) init.body = sending.of(inst.bytes(bodyAt, bodyLen));
      else if (stream) init.body = inst.streams.open(stream, call, sending);
      const outlive = (flags & OUTLIVE) !== 0;
      inst.host.fetch(inst, op, call, url, init, headerMs, totalMs, idleMs, maxBody, outlive, owned, sending);
    },
    // object calls the object of a machine and waits for its answer up to totalMs.
    object(op, callID, nameAt, nameLen, verbAt, verbLen, bodyAt, bodyLen, totalMs) {
      const call = inst.calls.get(callID);
      const body = bodyLen ? inst.bytes(bodyAt, bodyLen) : null;
      inst.host.callObject(inst, op, call, inst.text(nameAt, nameLen), inst.text(verbAt, verbLen), body, totalMs);
    },
    pause(op, ms) {
      inst.host.pause(inst, op, ms);
    },
    // variable stores the value of a variable or secret of the worker for copy and
    // returns its size, or MISSING.
    variable(at, n) {
      const value = inst.context.env[inst.text(at, n)];
      return typeof value === "string" ? keep(inst, value) : MISSING;
    },

    // dial opens a TCP connection; the socket functions work on one.
    dial(op, callID, at, n, ms) {
      inst.sockets.dial(op, inst.calls.get(callID), inst.text(at, n), ms);
    },
    socket_tls(op, socket, at, n) {
      inst.sockets.tls(op, socket, inst.text(at, n));
    },
    socket_read(op, socket) {
      inst.sockets.read(op, socket);
    },
    socket_write(op, socket, at, n) {
      inst.sockets.write(op, socket, inst.bytes(at, n));
    },
    socket_close(socket) {
      inst.sockets.close(socket);
    },

    // read returns the next chunk of a stream, read_all all of it. gather reads it into
    // memory of JavaScript.
    read(op, stream, ms) {
      inst.streams.read(op, stream, ms);
    },
    read_all(op, callID, stream, maxBytes, idleMs, totalMs) {
      inst.streams.readAll(op, inst.calls.get(callID), stream, maxBytes, idleMs, totalMs);
    },
    gather(op, stream, upTo, totalMs, hold) {
      inst.streams.gather(op, stream, upTo, totalMs, hold !== 0);
    },
    reopen(held) {
      return inst.streams.reopen(held);
    },
    digest(op, held) {
      crypto.subtle.digest("SHA-256", inst.streams.held(held)).then(
        (d) => inst.emit(op, OK, 0, "", new Uint8Array(d)),
        () => inst.emit(op, NETWORK),
      );
    },
    discard(stream) {
      inst.streams.discard(stream);
    },
    client_body(callID) {
      const call = inst.calls.get(callID);
      const { request } = call;
      if (!request?.body) return 0;
      return inst.streams.add(request, null, Number(request.headers.get("content-length") ?? -1), call);
    },
    prefix(at, n, rest) {
      return inst.streams.prefix(inst.bytes(at, n), rest);
    },
    // parts stores the bytes of a body that Go has in n parts, each an address and a
    // length in list.
    parts(list, n) {
      return inst.streams.parts(inst.u8(), new Uint32Array(inst.u8().buffer, list, 2 * n));
    },
    // memory returns the bytes of linear memory, or those that other instances of the
    // isolate have.
    memory(others) {
      return others ? inst.others() : inst.u8().buffer.byteLength;
    },
    through(src, idleMs, beatMs, length) {
      return inst.streams.derived("through", src, idleMs, length, beatMs);
    },
    watch(src, idleMs, beatMs) {
      return inst.streams.derived("watch", src, idleMs, -1, beatMs);
    },
    pipe(src, idleMs, length) {
      return inst.streams.derived("pipe", src, idleMs, length);
    },

    // template stores the constant fields of a kind of answers for respond.
    template(number, headAt, headLen) {
      inst.templates[number] = new Headers(parseHeader(inst.text(headAt, headLen)));
    },
    // respond answers a request with bytes, or with a stream. template is 0 or a
    // number of template.
    respond(callID, status, template, headAt, headLen, bodyAt, bodyLen, stream) {
      const call = inst.calls.get(callID);
      if (!call) return;
      const bodyless = status === 204 || status === 205 || status === 304;
      let body = null;
      if (stream) {
        if (inst.streams.flows(stream)) call.keep();
        body = inst.streams.open(stream, call);
      } else if (bodyLen && !bodyless) body = inst.bytes(bodyAt, bodyLen);
      inst.host.respond(call, status, inst.templates[template], inst.text(headAt, headLen), body);
    },
    // object_respond answers an event that has no request.
    object_respond(callID, status, bodyAt, bodyLen) {
      inst.calls.get(callID)?.answer({ status, body: bodyLen ? inst.bytes(bodyAt, bodyLen) : null });
    },
    // ws_accept answers a request with a WebSocket and returns its number; ws_dial opens
    // one to an upstream. The heads begin with a line of limits.
    ws_accept(callID, template, headAt, headLen) {
      const call = inst.calls.get(callID);
      if (!call || call.answered) return 0;
      const [limits, fields] = cut(inst.text(headAt, headLen));
      return inst.webSockets.accept(call, inst.templates[template], limits, fields);
    },
    ws_dial(op, callID, headAt, headLen, headerMs, maxBody) {
      const call = inst.calls.get(callID);
      const [limits, rest] = cut(inst.text(headAt, headLen));
      const [url, fields] = cut(rest);
      inst.host.dialSocket(inst, op, call, url, parseHeader(fields), limits, headerMs, maxBody);
    },
    ws_next(op, socket) {
      inst.webSockets.next(op, socket);
    },
    // ws_send returns 0 if the message was sent.
    ws_send(socket, at, n, kind) {
      return inst.webSockets.send(socket, kind === BINARY_MESSAGE ? inst.bytes(at, n) : inst.text(at, n), n);
    },
    ws_close(socket, code, at, n) {
      inst.webSockets.close(socket, code, inst.text(at, n));
    },
    // ws_silent returns for how many ms no message has passed, and ws_evict ends a
    // WebSocket of any call.
    ws_silent(socket) {
      return inst.webSockets.silent(socket);
    },
    ws_evict(socket, code, at, n) {
      inst.webSockets.evict(socket, code, inst.text(at, n));
    },
    // ws_relay passes messages between two WebSockets, without Go but for those that
    // have one of the texts. ws_relayed waits for these, for a check, or for the end.
    ws_relay(socket, to, at, n, everyMs) {
      inst.webSockets.relay(socket, to, n ? inst.text(at, n).split("\n") : [], everyMs);
    },
    ws_relayed(op, socket) {
      inst.webSockets.relayed(op, socket);
    },
    // keep keeps the event of a call alive after its answer.
    keep(callID) {
      inst.calls.get(callID)?.keep();
    },
    // changed reports a change of a machine to the other instance of the isolate.
    changed(at, n) {
      const machine = inst.text(at, n);
      for (const other of inst.peers()) other.enter(() => other.x.weir_changed(other.putHead(machine)));
    },
    // done ends a call: Go has forgotten it.
    done(callID) {
      const call = inst.calls.get(callID);
      if (!call) return;
      if (call.sockets) inst.webSockets.end(call);
      if (inst.streams.release(call)) inst.forget(call);
      else call.over = true; // until its uploads end, or its event does
    },
    log(level, at, n) {
      const line = inst.text(at, n);
      if (level >= 2) console.error(line);
      else console.log(line);
    },

    // zone returns how far a time zone is ahead of UTC at a time, in seconds.
    zone(at, n, unixMilli) {
      return zoneOffset(inst.text(at, n), unixMilli);
    },
    // decode stores bytes of another encoding as text for copy and returns its
    // size in UTF-8, or MISSING if the encoding is unknown.
    decode(labelAt, labelLen, at, n) {
      try {
        return keep(inst, new TextDecoder(inst.text(labelAt, labelLen)).decode(inst.u8().subarray(at, at + n)));
      } catch {
        return MISSING;
      }
    },
    // copy writes the text that variable or decode has stored.
    copy(at) {
      inst.u8().set(inst.result, at);
      inst.result = null;
    },
    // sign creates an RS256 signature with the platform's WebCrypto.
    sign(op, keyAt, keyLen, dataAt, dataLen) {
      const key = inst.bytes(keyAt, keyLen);
      const data = inst.bytes(dataAt, dataLen);
      const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
      crypto.subtle
        .importKey("pkcs8", key, algorithm, false, ["sign"])
        .then((k) => crypto.subtle.sign(algorithm, k, data))
        .then(
          (s) => inst.emit(op, OK, 0, "", new Uint8Array(s)),
          () => inst.emit(op, NETWORK, 0, "the private key is invalid"),
        );
    },

    // verify checks a signature with the platform's WebCrypto: a body of one byte says that it
    // is right, an empty one that it is not. A key that is no point of its curve is wrong too.
    verify(op, algAt, algLen, keyAt, keyLen, dataAt, dataLen, sigAt, sigLen) {
      const [name, extra, use] = signatures[inst.text(algAt, algLen)];
      const key = { ...JSON.parse(inst.text(keyAt, keyLen)), ext: true };
      const data = inst.bytes(dataAt, dataLen);
      const sig = inst.bytes(sigAt, sigLen);
      crypto.subtle
        .importKey("jwk", key, { name, ...extra }, false, ["verify"])
        .then((k) => crypto.subtle.verify({ name, ...use }, k, sig, data))
        .then(
          (ok) => inst.emit(op, OK, 0, "", new Uint8Array(ok ? 1 : 0)),
          () => inst.emit(op, OK, 0, "", new Uint8Array(0)),
        );
    },

    // The object's storage is synchronous, so its calls do not interleave. On an
    // exception a function returns STORAGE_FAULT, which fails that call only.
    //
    // storage_get returns the size of a value, which it writes if it fits.
    storage_get(callID, keyAt, keyLen, outAt, outSize) {
      return withStorage(inst, callID, (kv) => {
        const v = kv.get(inst.text(keyAt, keyLen));
        if (v === undefined) return MISSING;
        if (v.byteLength <= outSize) inst.u8().set(v, outAt);
        return v.byteLength;
      });
    },
    // storage_write takes rows as storage_rows writes them, with DELETED_ROW for
    // the length of the value of a row to delete. It writes all of them and sets
    // the alarm, or changes nothing.
    storage_write(callID, at, n, alarm) {
      return withStorage(inst, callID, (kv, storage) =>
        storage.transactionSync(() => {
          const view = new DataView(inst.u8().buffer);
          const end = at + n;
          while (at < end) {
            const keyLen = view.getUint32(at, true);
            const size = view.getInt32(at + 4, true);
            const key = inst.text(at + 8, keyLen);
            at += 8 + keyLen;
            if (size === DELETED_ROW) kv.delete(key);
            else {
              kv.put(key, inst.bytes(at, size));
              at += size;
            }
          }
          if (alarm > 0) storage.setAlarm(alarm);
          else if (alarm === 0) storage.deleteAlarm();
          return 0;
        }),
      );
    },
    // storage_list stores rows for storage_rows and returns the size of what that
    // writes: for each row two 32-bit lengths, the key, the value.
    storage_list(callID, prefixAt, prefixLen, startAt, startLen, limit) {
      const options = { prefix: inst.text(prefixAt, prefixLen) };
      if (startLen) options.startAfter = inst.text(startAt, startLen);
      if (limit) options.limit = limit;
      return withStorage(inst, callID, (kv) => {
        const rows = [];
        let size = 0;
        for (const [k, v] of kv.list(options)) {
          const key = encoder.encode(k);
          rows.push(key, v);
          size += 8 + key.byteLength + v.byteLength;
        }
        inst.result = rows;
        return size;
      });
    },
    storage_rows(at) {
      const out = inst.u8();
      const rows = inst.result;
      const view = new DataView(out.buffer);
      for (let i = 0; i < rows.length; i += 2) {
        view.setUint32(at, rows[i].byteLength, true);
        view.setUint32(at + 4, rows[i + 1].byteLength, true);
        at += 8;
        out.set(rows[i], at);
        at += rows[i].byteLength;
        out.set(rows[i + 1], at);
        at += rows[i + 1].byteLength;
      }
      inst.result = null;
    },
  };
}
