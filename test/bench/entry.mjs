// The gateway as it is deployed, and one path more that tells its memory.
import worker, { Machine } from "./worker.mjs";
import { stats } from "./bridge.mjs";

export { Machine };
export default {
  ...worker,
  fetch(request, env, ctx) {
    if (request.url.endsWith("/bench-stats")) return Response.json(stats());
    return worker.fetch(request, env, ctx);
  },
};
