// What the Go program asks of the platform: the functions that its wasm imports.
import { NETWORK, OK } from "./codes.mjs";

const enc = new TextEncoder();
const FAULT = -2; // of an object's storage

// How long an object may take, in ms. What a machine is now is asked before a
// call: without an answer the replica will do. A refresh answers within 10 s,
// see worker.mjs.
const snapshotMs = 10_000,
  objectMs = 30_000;

// parseHead splits "name\nvalue\n…" into pairs.
export function parseHead(text) {
  if (!text) return [];
  const parts = text.split("\n"),
    pairs = new Array(parts.length >> 1);
  for (let i = 0; i < pairs.length; i++) pairs[i] = [parts[2 * i], parts[2 * i + 1]];
  return pairs;
}

// failed returns an error answer that was not made by Go. Like Go's, it allows
// cross-origin reads only for URLs of /v1.
export function failed(url, status, message, type, code) {
  const headers = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
  if (/^[^:]+:\/\/[^/]*(\/[a-z0-9]{16})?\/v1\//.test(url)) headers["access-control-allow-origin"] = "*";
  if (status === 503) headers["retry-after"] = "1";
  return Response.json({ error: { message, type, param: null, code } }, { status, headers });
}

// stored uses the storage of the object that a call is for.
function stored(inst, callID, use) {
  const { storage } = inst.calls.get(callID);
  try {
    return use(storage.kv, storage);
  } catch (e) {
    console.error(JSON.stringify({ level: "error", msg: "object storage", what: String(e?.message).slice(0, 120) }));
    return FAULT;
  }
}

// imports are what Go calls. An exception in one must not end the instance:
// it fails the operation, or the answer, that it was for.
export function imports(inst) {
  const host = operations(inst);
  const failing = (name, fail) => {
    const run = host[name];
    host[name] = (first, ...rest) => {
      try {
        run(first, ...rest);
      } catch (e) {
        console.error(JSON.stringify({ level: "error", msg: "host call", name, what: e?.name }));
        fail(first);
      }
    };
  };
  for (const name of ["start", "object", "read", "read_all", "hold", "gather", "digest", "dial"])
    failing(name, (op) => queueMicrotask(() => inst.emit(op, NETWORK, 0)));
  failing("respond", (call) =>
    inst.calls
      .get(call)
      ?.answer(
        failed(inst.calls.get(call)?.request?.url ?? "", 500, "the answer could not be sent", "server_error", null),
      ),
  );
  return host;
}

function operations(inst) {
  return {
    // start makes one upstream call.
    start(op, callID, headAt, headLen, bodyAt, bodyLen, stream, headerMs, totalMs, idleMs, maxBody, flags) {
      const call = inst.calls.get(callID);
      if (call.rehearsal) return call.rehearsal.start(op, inst.text(headAt, headLen).split("\n")[1]);
      const head = inst.text(headAt, headLen),
        i = head.indexOf("\n"),
        j = head.indexOf("\n", i + 1);
      const init = { method: head.slice(0, i), redirect: "manual" };
      if (j > 0) init.headers = parseHead(head.slice(j + 1));
      if (bodyLen) init.body = inst.bytes(bodyAt, bodyLen);
      else if (stream) init.body = inst.streams.open(stream, call);
      inst.fly(
        op,
        call,
        head.slice(i + 1, j > 0 ? j : undefined),
        init,
        headerMs,
        totalMs,
        idleMs,
        maxBody,
        (flags & 1) !== 0,
        bodyLen > 0,
      );
    },
    // object calls the object of a machine.
    object(op, callID, nameAt, nameLen, verbAt, verbLen, bodyAt, bodyLen) {
      const call = inst.calls.get(callID),
        name = inst.text(nameAt, nameLen);
      const ns = call.env.MACHINE;
      const verb = inst.text(verbAt, verbLen),
        body = bodyLen ? inst.bytes(bodyAt, bodyLen) : null;
      if (call.rehearsal) return call.rehearsal.object(op, name, verb, body);
      const end = (...event) => {
        if (limit.done) return;
        limit.done = true;
        call.lift(limit);
        inst.emit(op, ...event);
      };
      const limit = call.limit(verb === "snapshot" ? snapshotMs : objectMs, () => end(NETWORK, 0, "no answer in time"));
      (async () => ns.get(ns.idFromName(name)).call(name, verb, body))().then(
        (r) => end(OK, r.status, "", r.body),
        (e) => end(NETWORK, e?.overloaded ? 1 : 0, String(e?.message ?? e).slice(0, 200)),
      );
    },
    pause(op, ms) {
      scheduler.wait(ms).then(() => inst.emit(op, OK, 0));
    },
    // dial opens a TCP connection; the others work on one.
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
    // read gives the next chunk of a stream, read_all the whole.
    read(op, stream, ms) {
      inst.streams.read(op, stream, ms);
    },
    read_all(op, callID, stream, maxBytes, idleMs, totalMs) {
      inst.streams.readAll(op, inst.calls.get(callID), stream, maxBytes, idleMs, totalMs);
    },
    hold(op, callID, stream, maxBytes, idleMs, totalMs) {
      inst.streams.hold(op, inst.calls.get(callID), stream, maxBytes, idleMs, totalMs);
    },
    gather(op, callID, stream, upTo, totalMs, keep) {
      inst.streams.gather(op, stream, upTo, totalMs, keep !== 0);
    },
    copy(held) {
      return inst.streams.copy(held);
    },
    digest(op, held) {
      crypto.subtle.digest("SHA-256", inst.streams.held(held)).then(
        (d) => inst.emit(op, OK, 0, "", new Uint8Array(d)),
        () => inst.emit(op, NETWORK, 0),
      );
    },
    discard(stream) {
      inst.streams.discard(stream);
    },
    client_body(callID) {
      const { request } = inst.calls.get(callID);
      return request?.body ? inst.streams.add(request, null, Number(request.headers.get("content-length") ?? -1)) : 0;
    },
    prefix(at, n, rest) {
      return inst.streams.prefix(inst.bytes(at, n), rest);
    },
    through(src, idleMs, length) {
      return inst.streams.derived("through", src, idleMs, length);
    },
    watch(src, idleMs, cut) {
      return inst.streams.derived(cut ? "guard" : "watch", src, idleMs, -1);
    },
    // respond answers a call with bytes, or with a stream.
    respond(callID, status, headAt, headLen, bodyAt, bodyLen, stream) {
      const call = inst.calls.get(callID);
      if (!call) return;
      if (call.rehearsal) return call.finish({ status, body: inst.bytes(bodyAt, bodyLen) });
      const init = { status, headers: parseHead(inst.text(headAt, headLen)) };
      const bare = status === 204 || status === 205 || status === 304;
      let body = null;
      if (stream) body = inst.streams.open(stream, call);
      else if (bodyLen && !bare) body = inst.bytes(bodyAt, bodyLen);
      call.answer(new Response(body, init));
    },
    object_respond(callID, status, bodyAt, bodyLen) {
      const call = inst.calls.get(callID),
        answer = { status, body: bodyLen ? inst.bytes(bodyAt, bodyLen) : null };
      if (call?.rehearsal) call.finish(answer);
      else call?.answer(answer);
    },
    // done ends a call: nothing of it is left in Go.
    done(callID) {
      const call = inst.calls.get(callID);
      inst.calls.delete(callID);
      call?.end();
    },
    log(level, at, n) {
      const line = inst.text(at, n);
      if (level >= 2) console.error(line);
      else console.log(line);
    },
    // url gives the platform's canonical form of a URL, or -1.
    url(at, n, outAt, outSize) {
      let href;
      try {
        href = new URL(inst.text(at, n)).href;
      } catch {
        return -1;
      }
      const { read, written } = enc.encodeInto(href, inst.u8().subarray(outAt, outAt + outSize));
      return read === href.length ? written : -1;
    },
    normalize(at, n, outAt, outSize) {
      const s = inst.text(at, n).normalize("NFKC");
      const { read, written } = enc.encodeInto(s, inst.u8().subarray(outAt, outAt + outSize));
      return read === s.length ? written : -1;
    },
    // decode reads bytes in an encoding and keeps the text, which decoded
    // copies; it gives its size in UTF-8, or -1.
    decode(labelAt, labelLen, at, n) {
      try {
        inst.listed = enc.encode(new TextDecoder(inst.text(labelAt, labelLen)).decode(inst.u8().subarray(at, at + n)));
        return inst.listed.byteLength;
      } catch {
        return -1;
      }
    },
    decoded(at) {
      inst.u8().set(inst.listed, at);
      inst.listed = null;
    },
    // sign makes an RS256 signature with the platform's WebCrypto.
    derive(op, passAt, passLen, saltAt, saltLen, iterations) {
      const pass = inst.bytes(passAt, passLen),
        salt = inst.bytes(saltAt, saltLen);
      crypto.subtle
        .importKey("raw", pass, "PBKDF2", false, ["deriveBits"])
        .then((k) => crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt, iterations }, k, 256))
        .then(
          (bits) => inst.emit(op, OK, 0, "", new Uint8Array(bits)),
          () => inst.emit(op, NETWORK, 0, "the platform refused"),
        );
    },
    sign(op, keyAt, keyLen, dataAt, dataLen) {
      const key = inst.bytes(keyAt, keyLen),
        data = inst.bytes(dataAt, dataLen);
      const alg = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
      crypto.subtle
        .importKey("pkcs8", key, alg, false, ["sign"])
        .then((k) => crypto.subtle.sign(alg, k, data))
        .then(
          (s) => inst.emit(op, OK, 0, "", new Uint8Array(s)),
          () => inst.emit(op, NETWORK, 0, "the private key was refused"),
        );
    },
    // The object's storage: synchronous, so it interleaves with nothing.
    // A fault gives FAULT, which fails the call that met it and no other.
    storage_get(callID, keyAt, keyLen, outAt, outSize) {
      return stored(inst, callID, (kv) => {
        const v = kv.get(inst.text(keyAt, keyLen));
        if (v === undefined) return -1;
        if (v.byteLength <= outSize) inst.u8().set(v, outAt);
        return v.byteLength;
      });
    },
    // storage_write takes rows as storage_rows gives them, a length of -1 for
    // a row that goes; all of them are written, and the alarm set, or nothing.
    storage_write(callID, at, n, alarm) {
      return stored(inst, callID, (kv, storage) =>
        storage.transactionSync(() => {
          const view = new DataView(inst.u8().buffer),
            end = at + n;
          while (at < end) {
            const keyLen = view.getUint32(at, true),
              size = view.getInt32(at + 4, true),
              key = inst.text(at + 8, keyLen);
            at += 8 + keyLen;
            if (size < 0) kv.delete(key);
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
    // storage_list keeps the rows and gives the size that storage_rows copies:
    // for each row two 32-bit lengths, the key, the value.
    storage_list(callID, prefixAt, prefixLen, startAt, startLen, limit) {
      const options = { prefix: inst.text(prefixAt, prefixLen) };
      if (startLen) options.startAfter = inst.text(startAt, startLen);
      if (limit) options.limit = limit;
      return stored(inst, callID, (kv) => {
        const rows = [];
        let size = 0;
        for (const [k, v] of kv.list(options)) {
          const key = enc.encode(k);
          rows.push(key, v);
          size += 8 + key.byteLength + v.byteLength;
        }
        inst.listed = rows;
        return size;
      });
    },
    storage_rows(at) {
      const out = inst.u8(),
        rows = inst.listed,
        view = new DataView(out.buffer);
      for (let i = 0; i < rows.length; i += 2) {
        view.setUint32(at, rows[i].byteLength, true);
        view.setUint32(at + 4, rows[i + 1].byteLength, true);
        at += 8;
        out.set(rows[i], at);
        at += rows[i].byteLength;
        out.set(rows[i + 1], at);
        at += rows[i + 1].byteLength;
      }
      inst.listed = null;
    },
    storage_alarm(callID, at) {
      return stored(inst, callID, (_, storage) => {
        if (at > 0) storage.setAlarm(at);
        else storage.deleteAlarm();
        return 0;
      });
    },
  };
}
