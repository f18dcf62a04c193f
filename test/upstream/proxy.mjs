// A CONNECT proxy on loopback that asks for user and password, misbehaves when
// told to, and counts. It leads every name to a port of this machine.
import { createServer, connect } from "node:net";

// start listens on a free port.
//
//	auth   "user:password" that it asks for; null for none
//	to     the port on loopback that every tunnel ends at
//
// The result has `url` (without user), `port`, `seen` (each CONNECT: target,
// authorization, status), `open` (tunnels now), `fault` and `close()`. fault is
// null or one of
//
//	{status: 502}   answer CONNECT with it        {garbage: true}   answer something else
//	{silent: true}  never answer                  {drop: true}      close without an answer
//	{early: "x"}    more bytes after the 200      {cut: n}          close after n bytes from the other end
//	{chatty: true}  other fields, split answer    {swap: port}      lead to another port
export async function start({ auth = null, to }) {
  const proxy = { seen: [], open: 0, fault: null };
  const sockets = new Set();
  const expected = auth === null ? null : "Basic " + Buffer.from(auth).toString("base64");

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let head = "";
    socket.on("data", function read(chunk) {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", read);
      serve(socket, head);
    });
  });

  function serve(socket, head) {
    const [line, ...fields] = head.split("\r\n");
    const field = (name) =>
      fields
        .find((f) => f.toLowerCase().startsWith(name + ":"))
        ?.slice(name.length + 1)
        .trim();
    const target = /^CONNECT (\S+) HTTP\/1\.1$/.exec(line)?.[1];
    const got = { target, authorization: field("proxy-authorization"), head, status: 200 };
    proxy.seen.push(got);
    const fault = proxy.fault ?? {};
    if (!target || field("host") !== target) got.status = 400;
    else if (expected !== null && got.authorization !== expected) got.status = 407;
    else got.status = fault.status ?? 200;
    if (fault.silent) return;
    if (fault.drop) return void socket.destroy();
    if (fault.garbage) return void socket.end("220 mail.example.com ESMTP\r\n");
    if (got.status !== 200) {
      const more = got.status === 407 ? 'proxy-authenticate: Basic realm="test"\r\n' : "";
      return void socket.end(
        `HTTP/1.1 ${got.status} No\r\n${more}content-type: text/html\r\ncontent-length: 6\r\n\r\n<html>`,
      );
    }
    const other = connect(fault.swap ?? to, "127.0.0.1", () => {
      proxy.open++;
      const answer = `HTTP/1.1 200 Connection established\r\nproxy-agent: test/1\r\n\r\n${fault.early ?? ""}`;
      if (fault.chatty) {
        socket.write(answer.slice(0, 20));
        setTimeout(() => socket.write(answer.slice(20)), 20);
      } else socket.write(answer);
      socket.pipe(other);
      let left = fault.cut ?? Infinity;
      other.on("data", (chunk) => {
        socket.write(chunk.subarray(0, Math.min(left, chunk.length)));
        if ((left -= chunk.length) <= 0) socket.destroy();
      });
    });
    other.on("error", () => socket.destroy());
    other.on("close", () => {
      proxy.open--;
      socket.end();
    });
    socket.on("close", () => other.destroy());
  }

  await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  proxy.port = server.address().port;
  proxy.url = `http://127.0.0.1:${proxy.port}`;
  proxy.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      for (const s of sockets) s.destroy();
    });
  return proxy;
}
