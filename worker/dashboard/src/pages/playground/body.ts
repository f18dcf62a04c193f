// The body of a call of the chat: what the user has set, and the conversation.

// Picture is an image of a message, as a data URL.
export interface Picture {
  name: string;
  url: string;
}

// ToolCall is a call of a function that a model asks for; the arguments are JSON.
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

// Result says what an answer took.
export interface Result {
  requestId: string;
  ms: number;
  /** to the first piece of the answer */
  firstMs?: number;
  input?: number;
  output?: number;
  /** missing while it is not known */
  costUsd?: number;
  unpriced?: boolean;
  stopped?: boolean;
}

// Turn is a message of a conversation.
export interface Turn {
  role: "user" | "assistant" | "tool";
  content: string;
  pictures?: Picture[];
  /** the model that was asked, of an answer */
  model?: string;
  thought?: string;
  calls?: ToolCall[];
  /** of a tool's result */
  callId?: string;
  /** JSON was asked for */
  json?: boolean;
  result?: Result;
}

// Options are the parameters, as they are typed; "" is the model's default.
export interface Options {
  system: string;
  maxTokens: string;
  temperature: string;
  topP: string;
  seed: string;
  stop: string;
  effort: string;
  format: "" | "json_object" | "json_schema";
  schema: string;
  tools: string;
  toolChoice: string;
}

export const noOptions: Options = {
  system: "",
  maxTokens: "",
  temperature: "",
  topP: "",
  seed: "",
  stop: "",
  effort: "",
  format: "",
  schema: "",
  tools: "",
  toolChoice: "",
};

// Fault is what is wrong with an option.
export interface Fault {
  field: keyof Options;
  text: string;
}

// faultsOf checks the options.
export function faultsOf(o: Options): Fault[] {
  const faults: Fault[] = [];
  const check = (field: keyof Options, wrong: string | false) => wrong && faults.push({ field, text: wrong });
  const outside = (text: string, least: number, most: number) =>
    text !== "" && !(Number(text) >= least && Number(text) <= most);
  const whole = (text: string) => text === "" || Number.isSafeInteger(Number(text));
  check(
    "maxTokens",
    (outside(o.maxTokens, 1, 1e9) || !whole(o.maxTokens)) && "Max output tokens must be a positive integer.",
  );
  check("temperature", outside(o.temperature, 0, 2) && "Temperature must be from 0 to 2.");
  check("topP", outside(o.topP, 0, 1) && "Top P must be from 0 to 1.");
  check("seed", !whole(o.seed) && "Seed must be an integer.");
  if (o.format === "json_schema") {
    const schema = parse(o.schema);
    check(
      "schema",
      schema.error
        ? `The JSON schema is not valid JSON: ${schema.error}`
        : !isObject(schema.value) && "The JSON schema must be an object.",
    );
  }
  if (o.tools.trim()) {
    const tools = parse(o.tools);
    const ok =
      Array.isArray(tools.value) && tools.value.every((t) => isObject(t) && (t.type !== "function" || named(t)));
    check(
      "tools",
      tools.error
        ? `Tools are not valid JSON: ${tools.error}`
        : !ok && "Tools must be a JSON array of objects; a function needs a name.",
    );
  }
  return faults;
}

const isObject = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);
const named = (t: Record<string, unknown>) => isObject(t.function) && typeof t.function.name === "string";

function parse(text: string): { value?: unknown; error?: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (e) {
    return { error: (e as Error).message };
  }
}

// bodyOf returns the body of a call that continues the conversation, with options
// without faults.
export function bodyOf(o: Options, model: string, turns: Turn[]): Record<string, unknown> {
  const number = (name: string, text: string) => (text === "" ? {} : { [name]: Number(text) });
  const stop = o.stop.split("\n").filter((line) => line !== "");
  return {
    model,
    messages: [...(o.system.trim() ? [{ role: "system", content: o.system.trim() }] : []), ...turns.map(message)],
    ...number("max_completion_tokens", o.maxTokens),
    ...number("temperature", o.temperature),
    ...number("top_p", o.topP),
    ...number("seed", o.seed),
    ...(stop.length > 0 ? { stop } : {}),
    ...(o.effort ? { reasoning_effort: o.effort } : {}),
    ...(o.format === "json_object" ? { response_format: { type: "json_object" } } : {}),
    ...(o.format === "json_schema"
      ? {
          response_format: {
            type: "json_schema",
            json_schema: { name: "answer", schema: JSON.parse(o.schema), strict: true },
          },
        }
      : {}),
    ...(o.tools.trim() ? { tools: JSON.parse(o.tools) } : {}),
    ...(o.tools.trim() && o.toolChoice ? { tool_choice: o.toolChoice } : {}),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function message(t: Turn): Record<string, unknown> {
  if (t.role === "tool") return { role: "tool", tool_call_id: t.callId, content: t.content };
  if (t.role === "assistant")
    return {
      role: "assistant",
      content: t.content || (t.calls ? null : ""),
      ...(t.calls
        ? {
            tool_calls: t.calls.map((c) => ({
              id: c.id,
              type: "function",
              function: { name: c.name, arguments: c.arguments },
            })),
          }
        : {}),
    };
  if (!t.pictures?.length) return { role: "user", content: t.content };
  return {
    role: "user",
    content: [
      ...(t.content ? [{ type: "text", text: t.content }] : []),
      ...t.pictures.map((p) => ({ type: "image_url", image_url: { url: p.url } })),
    ],
  };
}
