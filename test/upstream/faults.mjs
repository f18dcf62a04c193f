// Faults that a caller of the test upstream asks for.
//
// A fault spec is a list of words joined by "!", each `name` or `name=value`
// with the value percent-encoded. It stands after the first "!" of the model
// name, in a path segment that starts with "!", or in the header x-fault:
//
//	model-a!status=429!header=retry-after:7
//	http://127.0.0.1:9100/!slow=20!chunks=200/v1
//
// The words:
//
//	status=N  header=NAME:VALUE (again for more)  body=html|empty|broken|null|array|secret
//	times=N        the fault holds for the first N calls with this spec and credential
//	delay=MS       wait before the head       stall       never send the head
//	reset          break the connection before the head
//	chunks=N       pieces of a stream         slow=MS     wait before each piece
//	cut            end a stream without its terminator
//	cut=finish     end a stream before it says why it ends
//	reset-after=N, stall-after=N              after N pieces of a stream or of a body
//	size=BYTES     answer with that many bytes of a fixed pattern
//	gzip           compress the body          gzip=bad    compress, then break it
//	gzip=BYTES     a body that inflates to that many spaces
//	redirect=URL   302                        raw=NAME    see `raw` below
//	floats, no-usage, no-index, reverse       of embeddings: see openai.mjs

// parseFault returns the spec as an object; `header` is a list of pairs.
export function parseFault(spec) {
  const fault = { spec, header: [] };
  for (const word of spec.split("!").filter(Boolean)) {
    const i = word.indexOf("=");
    const name = i < 0 ? word : word.slice(0, i);
    const value = i < 0 ? true : decodeURIComponent(word.slice(i + 1));
    if (name === "header") fault.header.push([value.slice(0, value.indexOf(":")), value.slice(value.indexOf(":") + 1)]);
    else fault[name] = value !== true && /^\d+$/.test(value) ? Number(value) : value;
  }
  return fault;
}

// faultOf finds the spec of a request and takes it out of the path and the model.
export function faultOf(path, headers, json) {
  const specs = [];
  path = path.replace(/\/(!|%21)([^/?]*)/gi, (_, __, spec) => {
    specs.push(spec.replaceAll("%21", "!"));
    return "";
  });
  if (headers["x-fault"]) specs.push(headers["x-fault"]);
  let model = json?.model;
  if (typeof model === "string" && model.includes("!")) {
    specs.push(model.slice(model.indexOf("!") + 1));
    model = model.slice(0, model.indexOf("!"));
  }
  return { path, model, fault: parseFault(specs.join("!")) };
}

// bodies are invalid answers.
export const bodies = {
  html: ["text/html", "<html><body><h1>Bad gateway</h1></body></html>"],
  empty: ["application/json", ""],
  broken: ["application/json", '{"object":"list","data":[{"object":"embed'],
  null: ["application/json", "null"],
  array: ["application/json", "[]"],
};

// raw are answers that break HTTP itself, written to the socket as they are. A
// whole one announces that the connection closes, or the next call is lost on
// it.
export const raw = {
  "short-length": 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"object":"list"',
  "truncated-chunk":
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n40\r\n{"object":',
  "no-last-chunk": "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
  "bad-chunk":
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
  "two-lengths":
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
  "status-999":
    "HTTP/1.1 999 Odd\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
  garbage: "\x00\x01\x02 this is not HTTP\r\n\r\n",
  "early-hints": "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
};
