// The conversations of the playground: one, or two side by side. They outlive the
// page, so an answer continues while another page is open.
import { apiError, errorText, type Machine } from "../../api";
import type { RequestRow } from "../../api-types";
import { ask } from "../../client";
import { type MemoryStore, memoryStore } from "../../draft";
import { bodyOf, noOptions, type Options, type Picture, type Result, type Turn } from "./body";
import type { Sent } from "./call";
import { events } from "./events";

// Side is the conversation with one model.
export interface Side {
  model: string;
  turns: Turn[];
  error: string;
  /** set while an answer arrives; it ends the call */
  running?: AbortController;
  sent?: Sent;
  /** results of the tools that the last answer calls, as they are typed, by the id of the call */
  results: Record<string, string>;
}

// Talk is what the page shows.
export interface Talk {
  sides: Side[];
  draft: string;
  pictures: Picture[];
  options: Options;
}

export type TalkStore = MemoryStore<Talk>;

export const path = "/v1/chat/completions";
export const newSide = (model: string, turns: Turn[] = []): Side => ({ model, turns, error: "", results: {} });

export const talkOf = (machine: Machine, model: string): TalkStore =>
  memoryStore<Talk>(
    `chat ${machine.id}`,
    { sides: [newSide(model)], draft: "", pictures: [], options: noOptions },
    (t) => t.draft !== "" || t.pictures.length > 0 || t.sides.some((s) => s.turns.length > 0),
  );

// changeSide changes one side.
export function changeSide(store: TalkStore, at: number, part: Partial<Side>) {
  const talk = store.get();
  store.set({ ...talk, sides: talk.sides.map((s, i) => (i === at ? { ...s, ...part } : s)) });
}

// stop ends the calls that run.
export function stop(store: TalkStore) {
  for (const side of store.get().sides) side.running?.abort();
}

// clear starts over, with the same models and options.
export function clear(store: TalkStore) {
  stop(store);
  const talk = store.get();
  store.set({ ...talk, sides: talk.sides.map((s) => newSide(s.model)) });
}

// pending returns the calls of tools that have no result yet.
export function pending(side: Side) {
  const last = side.turns.at(-1);
  return last?.role === "assistant" ? (last.calls ?? []) : [];
}

const resultsOf = (side: Side): Turn[] =>
  pending(side).map((c) => ({ role: "tool", callId: c.id, content: side.results[c.id] ?? "" }));

// send sends what was typed to every side.
export function send(machine: Machine, store: TalkStore) {
  const talk = store.get();
  const turn: Turn = {
    role: "user",
    content: talk.draft.trim(),
    ...(talk.pictures.length > 0 ? { pictures: talk.pictures } : {}),
  };
  store.set({
    ...talk,
    draft: "",
    pictures: [],
    sides: talk.sides.map((s) => ({ ...s, results: {}, turns: [...s.turns, ...resultsOf(s), turn] })),
  });
  talk.sides.forEach((_, i) => void answer(machine, store, i));
}

// sendResults sends the results of the tools that a side's last answer calls.
export function sendResults(machine: Machine, store: TalkStore, at: number) {
  const side = store.get().sides[at];
  changeSide(store, at, { results: {}, turns: [...side.turns, ...resultsOf(side)] });
  void answer(machine, store, at);
}

// again asks for the last answer of a side again.
export function again(machine: Machine, store: TalkStore, at: number) {
  const { turns } = store.get().sides[at];
  const end = turns.at(-1)?.role === "assistant" ? -1 : turns.length;
  changeSide(store, at, { results: {}, turns: turns.slice(0, end) });
  void answer(machine, store, at);
}

// answer adds the model's answer to a side.
async function answer(machine: Machine, store: TalkStore, at: number) {
  const { sides, options } = store.get(),
    { model, turns } = sides[at];
  const running = new AbortController();
  const turn: Turn = { role: "assistant", content: "", model, ...(options.format ? { json: true } : {}) };
  const result: Result = { requestId: "", ms: 0 };
  // A side that was cleared or removed has another call, or none.
  const put = (part: Partial<Side>) => {
    if (store.get().sides[at]?.running === running) changeSide(store, at, part);
  };
  const show = () => put({ turns: [...turns, { ...turn }] });
  const began = performance.now();
  const elapsed = () => Math.round(performance.now() - began);
  changeSide(store, at, { running, error: "", sent: undefined });
  show();
  try {
    const body = bodyOf(options, model, turns);
    const res = await ask(machine, path, body, running.signal);
    put({ sent: { path, body, res } });
    if (!res.ok) throw await apiError(res);
    result.requestId = res.headers.get("x-request-id") ?? "";
    let shown = 0;
    for await (const data of events(res.body!)) {
      if (data === "[DONE]") break;
      if (add(turn, result, JSON.parse(data))) result.firstMs ??= elapsed();
      // A long text takes longer to show.
      if (performance.now() - shown > Math.max(40, turn.content.length / 200)) {
        shown = performance.now();
        show();
      }
    }
    turn.result = { ...result, ms: elapsed() };
    show();
  } catch (e) {
    const stopped = running.signal.aborted;
    if (stopped || turn.content || turn.thought || turn.calls) {
      turn.result = { ...result, ms: elapsed(), stopped };
      show();
    } else put({ turns });
    if (!stopped) put({ error: errorText(e) });
  } finally {
    put({ running: undefined });
  }
  if (result.requestId) await addCost(machine, store, result.requestId);
}

interface Chunk {
  error?: { message?: string };
  choices?: {
    delta?: {
      content?: unknown;
      reasoning_content?: unknown;
      reasoning?: unknown;
      refusal?: unknown;
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
  }[];
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null;
}

// add adds a chunk of a stream to an answer. It reports whether the chunk has a part
// of the answer.
function add(turn: Turn, result: Result, chunk: Chunk): boolean {
  if (chunk.error) throw new Error(chunk.error.message ?? "The answer was interrupted.");
  const { prompt_tokens: input, completion_tokens: output } = chunk.usage ?? {};
  if (typeof input === "number") result.input = input;
  if (typeof output === "number") result.output = output;
  const delta = chunk.choices?.[0]?.delta ?? {};
  const said = [delta.content, delta.refusal].filter((s) => typeof s === "string").join("");
  const thought = delta.reasoning_content ?? delta.reasoning;
  turn.content += said;
  if (typeof thought === "string" && thought) turn.thought = (turn.thought ?? "") + thought;
  for (const part of delta.tool_calls ?? []) {
    const calls = [...(turn.calls ?? [])],
      i = part.index ?? (part.id ? calls.length : Math.max(0, calls.length - 1));
    const was = calls[i] ?? { id: "", name: "", arguments: "" };
    calls[i] = {
      id: part.id || was.id,
      name: was.name + (part.function?.name ?? ""),
      arguments: was.arguments + (part.function?.arguments ?? ""),
    };
    turn.calls = calls.filter(Boolean);
  }
  return said !== "" || !!thought || !!delta.tool_calls;
}

// The gateway knows the cost of a call shortly after its end.
const costWaits = [100, 400, 1500, 3000, 6000, 12_000, 24_000]; // ms

// addCost adds the cost of a call to its answer, which the gateway has by then among
// its requests. An answer whose call is not found stays without one.
async function addCost(machine: Machine, store: TalkStore, id: string) {
  for (const ms of costWaits) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    if (store.discarded) return;
    const rows = await machine.list<RequestRow>(`/requests?limit=1&q=${encodeURIComponent(id)}`).catch(() => []);
    const row = rows.find((r) => r.id === id);
    if (!row) continue;
    const talk = store.get();
    const cost = row.priced ? { costUsd: row.costUsd ?? 0 } : { unpriced: true };
    const priced = (t: Turn) => (t.result?.requestId === id ? { ...t, result: { ...t.result, ...cost } } : t);
    store.set({ ...talk, sides: talk.sides.map((s) => ({ ...s, turns: s.turns.map(priced) })) });
    return;
  }
}
