// Pasted is a call that the user pasted: the JSON of its body, or a curl command.
export interface Pasted {
  path?: string;
  body: unknown;
}

// pasted parses such a text; it throws an Error that says what is wrong.
export function pasted(text: string): Pasted {
  if (!/^\s*(?:\$\s*)?curl\s/.test(text)) return { body: json(text) };
  const words = shellWords(text);
  let body: string | undefined, path: string | undefined;
  for (let i = 1; i < words.length; i++) {
    const [flag, value] =
      /^(--[\w-]+)=([^]*)$/.exec(words[i])?.slice(1) ??
      (/^-d./.test(words[i]) ? ["-d", words[i].slice(2)] : [words[i]]);
    if (/^(-d|--data|--data-raw|--data-binary|--data-ascii|--json)$/.test(flag)) body = value ?? words[++i];
    else if (/^https?:\/\//i.test(words[i]) && !path) path = new URL(words[i]).pathname;
  }
  if (body === undefined) throw new Error("The command has no body. Add one with -d.");
  if (body.startsWith("@")) throw new Error("The body is in a file. Paste the content of the file instead.");
  return { path, body: json(body) };
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
