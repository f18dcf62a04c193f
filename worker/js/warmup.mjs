// The rehearsal: before the first request the program serves a few made-up
// ones against a platform of nothing but tables. The engine compiles a function
// when it is first called, so without it the first request of an isolate would
// wait for most of the program to be compiled. Nothing of it stays: the program
// is built anew for the first real event.

const CALL = 0,
  ALARM = 1; // as in bridge/bridge.go
const enc = new TextEncoder(),
  dec = new TextDecoder();
const made = (c) => c.repeat(40); // as long as a secret; it protects nothing and is gone afterwards

// later is a promise that settles when the rehearsal gets to it: at this time
// the platform runs no callbacks.
const later = (queue, value) => ({
  then(f) {
    queue.push(() => f(value));
    return this;
  },
  catch() {
    return this;
  },
});

// Rows is the synchronous storage of an object.
class Rows {
  constructor() {
    this.rows = new Map();
  }
  get(key) {
    return this.rows.get(key);
  }
  put(key, value) {
    this.rows.set(key, value);
  }
  delete(key) {
    return this.rows.delete(key);
  }
  list({ prefix = "", startAfter = "", limit = Infinity }) {
    return [...this.rows]
      .filter(([k]) => k.startsWith(prefix) && k > startAfter)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit);
  }
}

const answers = {
  embeddings: {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: "AACAPwAAAEA=" }],
    model: "m",
    usage: { prompt_tokens: 1, total_tokens: 1 },
  },
  completions: {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      { index: 0, message: { role: "assistant", content: "a", refusal: null }, finish_reason: "stop", logprobs: null },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
  models: { object: "list", data: [{ id: "m", object: "model", created: 1, owned_by: "o" }] },
};

// rehearse runs the play. stage.request(head, body, platform) hands the program
// a request, stage.object(storage, name, verb, body, platform) a call of an
// object; both give a call that is `answered` in the end and has an `answer` of
// status and bytes. stage.emit tells how an operation ended. An answer that is
// a refusal is an error.
export function rehearse(stage) {
  const queue = [],
    objects = new Map(),
    kv = new Map();
  const storage = (name) => {
    if (!objects.has(name)) objects.set(name, new Rows());
    return { kv: objects.get(name), setAlarm() {}, deleteAlarm() {}, transactionSync: (use) => use() };
  };
  const platform = {
    env: {
      ADMIN_TOKEN: made("a"),
      API_KEY_SECRET: made("k"),
      CREDENTIALS_KEY: made("c"),
      ALLOW_PRIVATE_UPSTREAMS: "true",
      LOG_LEVEL: "error",
      KV: {
        get: (key) => later(queue, kv.get(key) ?? null),
        put: (key, value) => {
          kv.set(key, value);
          return later(queue, undefined);
        },
        delete: (key) => {
          kv.delete(key);
          return later(queue, undefined);
        },
      },
    },
    // start answers an upstream call by the last part of its address.
    start(op, url) {
      const answer = answers[url.slice(url.lastIndexOf("/") + 1)];
      queue.push(() =>
        stage.emit(
          op,
          0,
          answer ? 200 : 404,
          "content-type\napplication/json\nx-request-id\nr",
          enc.encode(JSON.stringify(answer ?? {})),
        ),
      );
    },
    object(op, name, verb, body) {
      queue.push(() => {
        const call = stage.object(CALL, storage(name), name, verb, body, platform);
        const wait = () =>
          call.answered ? stage.emit(op, 0, call.answer.status, "", call.answer.body) : queue.push(wait);
        queue.push(wait);
      });
    },
  };
  const settle = () => {
    for (let i = 0; i < 2000 && queue.length; i++) queue.shift()();
  };
  // play serves one request to its end.
  const play = (method, path, key, body) => {
    const bytes = body ? enc.encode(JSON.stringify(body)) : null;
    const head =
      `${method}\nhttp://rehearsal.example${path}\nauthorization\nBearer ${key}` +
      (bytes ? `\ncontent-type\napplication/json\ncontent-length\n${bytes.byteLength}` : "");
    const call = stage.request(head, bytes, platform);
    settle();
    if (!call.answered) throw new Error(`${method} ${path} was not answered`);
    const text = call.answer.body ? dec.decode(call.answer.body) : "";
    if (call.answer.status >= 300) throw new Error(`${method} ${path}: ${call.answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  };
  const { machineId, apiKey } = play("POST", "/api/machines", made("a"), {});
  play("POST", `/${machineId}/api/providers`, made("a"), {
    provider: "openai-compatible-0123abcd",
    apiKey: "rehearsal-key",
    providerSpecificData: { baseUrl: "http://rehearsal.example/v1", prefix: "r" },
  });
  play("GET", `/${machineId}/api/providers`, made("a"));
  stage.object(ALARM, storage(machineId), machineId, "", null, platform); // publishes the replica
  settle();
  for (let i = 0; i < 2; i++) {
    play("POST", "/v1/embeddings", apiKey, { model: "r/m", input: "a", encoding_format: "base64" });
    play("POST", `/${machineId}/v1/embeddings`, apiKey, { model: "r/m", input: "a" });
  }
  play("GET", "/v1/models", apiKey);
}
