// The part of a client's request that the program receives, and the answers to
// requests that it never receives.
import { ROUTES } from "./contract.mjs";

const machinePrefix = /^\/[a-z0-9]{16}(?=\/(?:v1(?:alpha|beta)?|api)\/)/;

const routes = ROUTES.map((r) => ({ ...r, names: new Set(r.fields), below: r.paths.map((p) => p + "/") }));
const routeAt = new Map();
for (const r of routes) for (const p of r.paths) if (!routeAt.has(p)) routeAt.set(p, r);

// routeOf returns the route class of a request's URL.
export function routeOf(url) {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  const to = url.indexOf("?", from);
  let path = from < 0 ? "" : url.slice(from, to < 0 ? undefined : to);
  if (path[17] === "/") path = path.replace(machinePrefix, "");
  if (path.startsWith("/v1/v1/")) path = path.slice(3);
  return routeAt.get(path) ?? routes.find((r) => r.below.some((p) => path.startsWith(p)));
}

// headOf returns "METHOD\nURL\nname\nvalue…" with the fields that the program
// reads, the declared length of the body (-1 if unknown) and whether the body is
// encoded.
export function headOf({ method, url, headers }) {
  const route = routeOf(url);
  let head = method + "\n" + url;
  let length = -1;
  let encoded = false;
  const add = (name, value) => {
    head += "\n" + name + "\n" + value;
    if (name === "content-length") length = +value;
    else if (name === "content-encoding") encoded = true;
  };
  if (route.prefixes.length) {
    for (const [name, value] of headers)
      if (route.names.has(name) || route.prefixes.some((p) => name.startsWith(p))) add(name, value);
    return { head, length, encoded };
  }
  // A look-up costs as much as a small allocation, and the key in Authorization
  // decides if there are two.
  let key = false;
  for (const name of route.fields) {
    if (key && name === "x-api-key") continue;
    const value = headers.get(name);
    if (value === null) continue;
    add(name, value);
    if (name === "authorization") key = value.includes(" ");
  }
  return { head, length, encoded };
}

// The error types of the Messages API by status, as in pkg/wire/apierr.
const messagesTypes = { 400: "invalid_request_error", 408: "timeout_error", 500: "api_error", 503: "overloaded_error" };

// The status names of the Gemini API, as in pkg/wire/apierr.
const geminiStatus = { 400: "INVALID_ARGUMENT", 408: "DEADLINE_EXCEEDED", 500: "INTERNAL", 503: "UNAVAILABLE" };

// errorResponse returns an answer that the program did not write. Like the
// program's, it has the form of the route's dialect, and can be read from other
// origins on the routes of the data plane only.
export function errorResponse(request, status, message, type, code) {
  const route = request && routeOf(request.url);
  const headers = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
  if (route?.cors) {
    headers["access-control-allow-origin"] = "*";
    headers["access-control-expose-headers"] = "retry-after";
  }
  if (status === 503) headers["retry-after"] = "1";
  const body =
    route?.name === "messages"
      ? { type: "error", error: { type: messagesTypes[status], message }, request_id: null }
      : route?.name === "gemini"
        ? { error: { code: status, message, status: geminiStatus[status] } }
        : { error: { message, type, param: null, code } };
  return Response.json(body, { status, headers });
}
