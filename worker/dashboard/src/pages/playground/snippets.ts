// A call of the gateway's API as code: a curl command, a Python program and a Node.js
// program. The key is read from the environment variable WEIR_KEY, and images from
// files beside the program: as text they would be megabytes.

export type Language = "curl" | "python" | "node";

// snippet returns the call of a path with a body.
export function snippet(language: Language, origin: string, path: string, body: object): string {
  const files: File[] = [];
  const call = { origin, path, body: withFiles(body, files), files };
  return language === "curl" ? curl(call) : language === "python" ? python(call) : node(call);
}

interface Call {
  origin: string;
  path: string;
  body: Record<string, unknown>;
  files: File[];
}

// File is an image that was taken out of the body. Its mark stands in its place.
interface File {
  name: string;
  type: string;
  mark: string;
}

// withFiles returns a copy of a body with marks in place of images.
function withFiles(body: object, files: File[]): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(body, (_, v) => {
      const type = typeof v === "string" && /^data:(image\/(\w+));base64,/.exec(v);
      if (!type) return v;
      const n = files.length + 1;
      // A mark is no text that a person writes.
      files.push({
        name: `image-${n}.${type[2].replace("jpeg", "jpg")}`,
        type: type[1],
        mark: `\uE000image ${n}\uE001`,
      });
      return files[n - 1].mark;
    }),
  );
}

// replaceMarks replaces each mark of a text.
const replaceMarks = (text: string, files: File[], by: (f: File) => string, quoted: boolean) =>
  files.reduce((all, f) => all.replace(quoted ? `"${f.mark}"` : f.mark, () => by(f)), text);

// shell quotes a text for a POSIX shell.
export const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function curl({ origin, path, body, files }: Call): string {
  const head = `curl ${shell(origin + path)} \\
  -H "Authorization: Bearer $WEIR_KEY" \\
  -H 'Content-Type: application/json' \\
  `;
  const json = JSON.stringify(body);
  if (files.length === 0) return `${head}-d ${shell(json)}`;
  // Images do not fit on a command line, so the body is standard input.
  const escaped = json.replace(/[\\$`]/g, "\\$&");
  const encoded = (f: File) => `data:${f.type};base64,$(base64 < ${f.name} | tr -d '\\n')`;
  return `${head}--data-binary @- <<EOF
${replaceMarks(escaped, files, encoded, false)}
EOF`;
}

// methods are the calls of OpenAI's libraries, by path, and what is done with the answer.
const methods: Record<string, { name: string; python: string; node: string; imports?: string[] }> = {
  "/v1/embeddings": {
    name: "embeddings.create",
    python: "print(answer.data[0].embedding)",
    node: "console.log(answer.data[0].embedding);",
  },
  "/v1/images/generations": {
    name: "images.generate",
    python: 'with open("image.png", "wb") as f:\n    f.write(base64.b64decode(answer.data[0].b64_json))',
    node: 'writeFileSync("image.png", Buffer.from(answer.data[0].b64_json, "base64"));',
    imports: ["base64", "writeFileSync"],
  },
  "/v1/audio/speech": {
    name: "audio.speech.create",
    python: 'with open("speech.audio", "wb") as f:\n    f.write(answer.read())',
    node: 'writeFileSync("speech.audio", Buffer.from(await answer.arrayBuffer()));',
    imports: ["writeFileSync"],
  },
};
const chat = {
  name: "chat.completions.create",
  python:
    'for chunk in answer:\n    if chunk.choices:\n        print(chunk.choices[0].delta.content or "", end="", flush=True)',
  node: 'for await (const chunk of answer) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");',
};
const methodOf = (path: string) => (path === "/v1/chat/completions" ? chat : methods[path]);

function python({ origin, path, body, files }: Call): string {
  const m = methodOf(path) as (typeof methods)[string] | undefined;
  const encoded = (f: File) => `data_url(${JSON.stringify(f.name)}, ${JSON.stringify(f.type)})`;
  const literal = (v: unknown, depth: number) => replaceMarks(pythonOf(v, depth), files, encoded, true);
  const call = m
    ? `client.${m.name}(\n${Object.entries(body)
        .map(([k, v]) => `    ${k}=${literal(v, 1)},\n`)
        .join("")})`
    : `client.post(${JSON.stringify(path.replace(/^\/v1/, ""))}, cast_to=object, body=${literal(body, 0)})`;
  return `# pip install openai
${files.length > 0 || m?.imports?.includes("base64") ? "import base64\n" : ""}import os

from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(`${origin}/v1`)}, api_key=os.environ["WEIR_KEY"])
${
  files.length > 0
    ? `

def data_url(name, type):
    with open(name, "rb") as f:
        return f"data:{type};base64," + base64.b64encode(f.read()).decode()

`
    : ""
}
answer = ${call}
${m ? m.python : "print(answer)"}
`;
}

// pythonOf returns a JSON value as a Python literal.
function pythonOf(v: unknown, depth: number): string {
  if (v === null) return "None";
  if (v === true) return "True";
  if (v === false) return "False";
  if (typeof v !== "object") return JSON.stringify(v);
  const list = Array.isArray(v)
    ? v.map((e) => pythonOf(e, depth + 1))
    : Object.entries(v).map(([k, e]) => `${JSON.stringify(k)}: ${pythonOf(e, depth + 1)}`);
  const [open, close] = Array.isArray(v) ? "[]" : "{}";
  if (list.length === 0) return open + close;
  const pad = "    ".repeat(depth + 1);
  return `${open}\n${list.map((e) => `${pad}${e},\n`).join("")}${"    ".repeat(depth)}${close}`;
}

function node({ origin, path, body, files }: Call): string {
  const m = methodOf(path) as (typeof methods)[string] | undefined;
  const encoded = (f: File) => `dataUrl(${JSON.stringify(f.name)}, ${JSON.stringify(f.type)})`;
  const json = replaceMarks(JSON.stringify(body, null, 2), files, encoded, true);
  const names = [files.length > 0 && "readFileSync", m?.imports && "writeFileSync"].filter(Boolean);
  const call = m
    ? `client.${m.name}(${json})`
    : `client.post(${JSON.stringify(path.replace(/^\/v1/, ""))}, { body: ${json} })`;
  return `// npm install openai
${names.length > 0 ? `import { ${names.join(", ")} } from "node:fs";\n` : ""}import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${JSON.stringify(`${origin}/v1`)}, apiKey: process.env.WEIR_KEY });
${files.length > 0 ? 'const dataUrl = (name, type) => `data:${type};base64,${readFileSync(name, "base64")}`;\n' : ""}
const answer = await ${call};
${m ? m.node : "console.log(answer);"}
`;
}
