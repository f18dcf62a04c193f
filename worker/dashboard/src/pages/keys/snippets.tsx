import { useId, useState } from "preact/hooks";
import type { Machine } from "../../api";
import { shell } from "../../client";
import { useLoad } from "../../hooks";
import { Code } from "../../code";
import { Field } from "../../ui";

// clients are apps that work with a base URL and a key, with the settings that
// each documents. url is the gateway's origin.
const clients: [name: string, where: string, text: (url: string, key: string, model: string) => string][] = [
  [
    "curl",
    "Run in a shell",
    (url, key, model) => `curl ${shell(`${url}/v1/chat/completions`)} \\
  -H ${shell(`Authorization: Bearer ${key}`)} \\
  -H 'Content-Type: application/json' \\
  -d ${shell(JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }))}`,
  ],
  [
    "OpenAI, Python",
    "pip install openai",
    (url, key, model) => `from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(`${url}/v1`)}, api_key=${JSON.stringify(key)})
answer = client.chat.completions.create(
    model=${JSON.stringify(model)},
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
  ],
  [
    "OpenAI, Node",
    "npm install openai",
    (url, key, model) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${JSON.stringify(`${url}/v1`)}, apiKey: ${JSON.stringify(key)} });
const answer = await client.chat.completions.create({
  model: ${JSON.stringify(model)},
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`,
  ],
  [
    "Anthropic, Python",
    "pip install anthropic",
    (url, key, model) => `from anthropic import Anthropic

client = Anthropic(base_url=${JSON.stringify(url)}, api_key=${JSON.stringify(key)})
answer = client.messages.create(
    model=${JSON.stringify(model)},
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`,
  ],
  [
    "Anthropic, Node",
    "npm install @anthropic-ai/sdk",
    (url, key, model) => `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(key)} });
const answer = await client.messages.create({
  model: ${JSON.stringify(model)},
  max_tokens: 1024,
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.content[0].text);`,
  ],
  [
    "Claude Code",
    'In the shell that starts it, or under "env" in ~/.claude/settings.json. ANTHROPIC_API_KEY must not be set.',
    (url, key, model) => `unset ANTHROPIC_API_KEY
export ANTHROPIC_BASE_URL=${shell(url)}
export ANTHROPIC_AUTH_TOKEN=${shell(key)}
export ANTHROPIC_MODEL=${shell(model)}
claude`,
  ],
  [
    "Codex CLI",
    "In ~/.codex/config.toml. Set the key in the environment: export WEIR_KEY=…",
    (url, key, model) => `# export WEIR_KEY=${shell(key)}
model = ${JSON.stringify(model)}
model_provider = "weir"

[model_providers.weir]
name = "weir"
base_url = ${JSON.stringify(`${url}/v1`)}
env_key = "WEIR_KEY"
wire_api = "responses"`,
  ],
  [
    "OpenCode",
    "In opencode.json. Set the key in the environment: export WEIR_KEY=…",
    (url, _, model) =>
      JSON.stringify(
        {
          $schema: "https://opencode.ai/config.json",
          model: `weir/${model}`,
          provider: {
            weir: {
              npm: "@ai-sdk/openai-compatible",
              name: "weir",
              options: { baseURL: `${url}/v1`, apiKey: "{env:WEIR_KEY}" },
              models: { [model]: {} },
            },
          },
        },
        null,
        2,
      ),
  ],
  [
    "aider",
    "Run in a shell",
    (url, key, model) => `export OPENAI_API_BASE=${shell(`${url}/v1`)}
export OPENAI_API_KEY=${shell(key)}
aider --model ${shell(`openai/${model}`)}`,
  ],
  [
    "Cline, Roo Code",
    "In the extension’s settings",
    (url, key, model) => `API provider: OpenAI Compatible
Base URL: ${url}/v1
API key: ${key}
Model ID: ${model}`,
  ],
];

export const noKey = "YOUR_KEY";

// Snippets shows the settings of a client, ready to paste: with this gateway's
// address, a model of the machine and, right after its creation, the key.
export function Snippets({ machine, apiKey = noKey }: { machine: Machine; apiKey?: string }) {
  const models = useLoad(() => machine.modelIds("llm"), [machine]);
  const id = useId();
  const [index, setIndex] = useState(0),
    [typed, setModel] = useState("");
  const model = typed || models.data?.[0] || "provider/model";
  const [name, where, text] = clients[index];
  return (
    <div class="stack">
      <div class="grid">
        <Field label="Client">
          <select value={String(index)} onChange={(e) => setIndex(Number(e.currentTarget.value))}>
            {clients.map(([c], i) => (
              <option key={c} value={String(i)}>
                {c}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Model">
          <input
            list={id}
            autocapitalize="none"
            spellcheck={false}
            placeholder={model}
            value={typed}
            onInput={(e) => setModel(e.currentTarget.value)}
          />
        </Field>
        <datalist id={id}>
          {models.data?.slice(0, 500).map((m) => (
            <option key={m} value={m} />
          ))}
        </datalist>
      </div>
      <p class="muted small">{where}</p>
      <Code label={`Settings for ${name}`} text={text(location.origin, apiKey, model)} />
    </div>
  );
}
