// The floor: a worker that passes everything on and looks at nothing.
export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url);
    return fetch(env.UPSTREAM + pathname, { method: request.method, headers: request.headers, body: request.body });
  },
};
