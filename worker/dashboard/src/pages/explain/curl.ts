// Pasted is a call that the user pasted: the JSON of its body, or a curl command.
export interface Pasted {
  path?: string;
  body: unknown;
  /** those of routingHeaders that the command has */
  headers?: Record<string, string>;
}

// routingHeaders are the fields that POST /api/explain takes: they decide on the route of a
// request. Those that name a session are in pkg/routing/session.go.
export const routingHeaders = [
  "x-connection-id",
  "x-provider",
  "x-model",
  "x-session-id",
  "x-session-affinity",
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "conversation_id",
  "x-client-session-id",
  "agent-session-id",
  "x-litellm-session-id",
  "x-openwebui-chat-id",
];

// pasted parses such a text; it throws an Error that says what is wrong.
export function pasted(text: string): Pasted {
  if (!/^\s*(?:\$\s*)?curl\s/.test(text)) return { body: json(text) };
  const words = shellWords(text);
  let body: string | undefined, path: string | undefined;
  const headers: Record<string, string> = {};
  for (let i = 1; i < words.length; i++) {
    const [flag, value] =
      /^(--[\w-]+)=([^]*)$/.exec(words[i])?.slice(1) ??
      (/^-[dH]./.test(words[i]) ? [words[i].slice(0, 2), words[i].slice(2)] : [words[i]]);
    if (/^(-d|--data|--data-raw|--data-binary|--data-ascii|--json)$/.test(flag)) body = value ?? words[++i];
    else if (/^(-H|--header)$/.test(flag)) {
      const [, name, text] = /^([^:]+):\s*([^]*)$/.exec(value ?? words[++i] ?? "") ?? [];
      if (name && routingHeaders.includes(name.toLowerCase())) headers[name.toLowerCase()] = text.trim();
    } else if (/^https?:\/\//i.test(words[i]) && !path) path = new URL(words[i]).pathname;
  }
  if (body === undefined) throw new Error("The command has no body. Add one with -d.");
  if (body.startsWith("@")) throw new Error("The body is in a file. Paste the content of the file instead.");
  return { path, body: json(body), ...(Object.keys(headers).length > 0 && { headers }) };
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new Error(`The body is not valid JSON: ${(e as Error).message}.`);
  }
}

// shellWords splits a command into words as a POSIX shell does, with quotes,
// backslashes and continued lines.
export function shellWords(text: string): string[] {
  const out: string[] = [];
  const word = /(?:'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+))|(\s+)/g;
  let now: string | null = null;
  for (const [, single, double, escaped, plain, space] of text.trim().matchAll(word)) {
    if (space !== undefined) {
      if (now !== null) out.push(now);
      now = null;
    } else if (escaped !== "\n") {
      now =
        (now ?? "") +
        (single ?? double?.replace(/\\([$`"\\\n])/g, (_, c) => (c === "\n" ? "" : c)) ?? escaped ?? plain);
    }
  }
  if (now !== null) out.push(now);
  return out;
}
