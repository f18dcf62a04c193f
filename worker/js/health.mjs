// healthOf answers GET /health, without the program: a monitor neither starts nor
// warms it up. The answer is the one of the program.
export function healthOf(request) {
  if (request.method !== "GET") return null;
  const { url } = request;
  if (url.slice(url.indexOf("/", url.indexOf("://") + 3)) !== "/health") return null;
  if (request.headers.has("upgrade")) return null; // which the program refuses
  return new Response('{"status":"ok"}', {
    headers: {
      "cache-control": "no-store",
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
      "x-request-id": "req_" + crypto.randomUUID().replaceAll("-", ""),
    },
  });
}
