// The rows of the benchmark that compare the CPU time of one request.
import { MiB } from "../e2e/isolate.mjs";

// Models: a gateway has them under the prefixes of its connections; the floor
// passes the name on.
const model = (t, prefix, name = "bench") => (t.own ? `${prefix}/${name}` : name);

export const embed = (model) =>
  JSON.stringify({ model, input: "The food was delicious and the waiter friendly.", encoding_format: "base64" });
const messages = [{ role: "user", content: "Say hello in a friendly way." }];
export const chat = (model, stream) => JSON.stringify({ model, messages, ...(stream ? { stream: true } : {}) });
export const message = (model, stream) =>
  JSON.stringify({ model, max_tokens: 1000, messages, ...(stream ? { stream: true } : {}) });
const response = (model, more) =>
  JSON.stringify({ model, input: "Say hello in a friendly way.", store: false, ...more });
export const done = "data: [DONE]\n\n",
  stopped = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
// A response has a new id in each answer, so its last event has no fixed text but its end.
const completed = "}}\n\n";

// A form of 24 MiB that goes up with its model first.
const boundary = "----formdata-undici-028837456192";
const formPart = (name, more = "") => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
const form = (model) =>
  Buffer.concat([
    Buffer.from(formPart("model") + model + "\r\n" + formPart("file", '; filename="a.mp3"')),
    Buffer.alloc(24 * MiB, "0123456789abcdef"),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
const formHead = { "content-type": `multipart/form-data; boundary=${boundary}` };

// requests are the calls that other parts of the benchmark repeat too: the options
// of load for a target.
export const requests = {
  embeddings: (t) => ({ path: "/v1/embeddings", body: embed(model(t, "up")) }),
  chat: (t) => ({ path: "/v1/chat/completions", body: chat(model(t, "up")) }),
  messages: (t) => ({ path: "/v1/messages", body: message(model(t, "an")) }),
  responses: (t) => ({ path: "/v1/responses", body: response(model(t, "up")) }),
};

// rowsOf returns the rows. A row compares one request of the gateways with the
// floor's, or with that of another target, base.
//
//	of(target) returns path, body and more for load; limit is the budget of the
//	edge build and goal that of the native server, as ratios; MiB is how many a
//	request moves: the figure is for one of them then. same checks that base and
//	target write the same bytes.
export function rowsOf({ floor, script, bridge, edge, native, upstreamUrl }) {
  const gateways = [edge, native];
  const call = (id, title, of, more) => ({ id, title, n: 15000, base: floor, targets: gateways, of, ...more });
  const stream = (id, title, of, more) => ({ ...call(id, title, of, more), n: 640 });
  const large = (id, title, of) => ({ ...call(id, title, of), n: 60, MiB: 24 });
  // A metered stream of the dialect that the upstream speaks.
  const metered = (id, title, of) =>
    stream(id, `CPU per 200-chunk ${title} stream, metered`, (t) => ({ ...of(t), equal: true }), {
      limit: 1.5,
      goal: 0.75,
    });
  // A stream in another dialect than the upstream's, against the same in JavaScript.
  const translated = (id, title, of) =>
    stream(id, `CPU per 200-chunk stream, ${title}, against JS`, of, { limit: 0.75, base: script, same: true });
  return [
    call("embeddings", "CPU per embeddings call, 32 connections", requests.embeddings, { limit: 2.4, goal: 0.75 }),
    call(
      "fallback",
      "the same with a second account behind the first",
      (t) => ({ path: "/v1/embeddings", body: embed(model(t, "two")) }),
      { limit: 2.4 },
    ),
    call("chat", "CPU per chat call, 32 connections", requests.chat, { limit: 2.4, goal: 0.6 }),
    call("messages", "CPU per Messages call", requests.messages, { limit: 2.4 }),
    call("responses", "CPU per Responses call", requests.responses, { limit: 2.4 }),
    call("responses_stored", "the same, which the upstream stores", (t) => ({
      path: "/v1/responses",
      body: response(model(t, "up"), { store: true }),
    })),
    metered("stream", "chat", (t) => ({
      path: "/v1/chat/completions",
      body: chat(model(t, "up"), true),
      ends: done,
    })),
    metered("stream_messages", "Messages", (t) => ({
      path: "/v1/messages",
      body: message(model(t, "an"), true),
      ends: stopped,
    })),
    metered("stream_responses", "Responses", (t) => ({
      path: "/v1/responses",
      body: response(model(t, "up"), { stream: true }),
      ends: completed,
    })),
    translated("chat_from_messages", "Messages to chat", (t) => ({
      path: "/v1/chat/completions",
      body: chat(model(t, "an"), true),
      ends: done,
    })),
    translated("messages_from_chat", "chat to Messages", (t) => ({
      path: "/v1/messages",
      body: message(model(t, "up"), true),
      ends: stopped,
    })),
    translated("responses_from_chat", "chat to Responses", (t) => ({
      path: t.own ? "/v1/responses" : "/v1/responses?chat",
      body: response(model(t, "co"), { stream: true }),
      ends: completed,
    })),
    translated("responses_from_messages", "Messages to Responses", (t) => ({
      path: "/v1/responses",
      body: response(model(t, "an"), { stream: true }),
      ends: completed,
    })),
    large("upload", "CPU per MiB of a form with its model first", (t) => ({
      path: "/v1/audio/transcriptions",
      body: form(model(t, "up")),
      headers: formHead,
      c: 4,
      ends: "}",
      equal: true,
    })),
    large("download", "CPU per MiB of a video's content", (t) => ({
      path: t.own ? "/v1/videos/job-1/content" : "/file.mp4",
      c: 4,
      ends: "def",
      equal: true,
    })),
    {
      ...call("bridge_post", "bridge alone: CPU per call", (t) => ({
        path: t === bridge ? `/post?${upstreamUrl}/v1/embeddings` : "/v1/embeddings",
        body: embed("bench"),
      })),
      targets: [bridge],
    },
    ...["splice", "watch", "through"].map((kind) => ({
      ...stream(`bridge_${kind}`, `bridge alone: CPU per 200-chunk stream, ${kind}`, (t) =>
        t === bridge
          ? { path: `/${kind}?${upstreamUrl}/v1/events`, ends: kind === "through" ? "<end <nil>>" : done }
          : { path: "/v1/events", ends: done },
      ),
      targets: [bridge],
    })),
  ];
}
