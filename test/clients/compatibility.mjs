// docs/compatibility.md, from the tables of the tests and the results that they wrote to
// the file CLIENTS_RESULTS. It fails if the document is not current. GOLDEN=update writes
// it, if every scenario was played (SOAK=1).
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { clis, scenarios as runs } from "./clis.mjs";
import { families } from "./families.mjs";
import { scenarios } from "./patterns.mjs";
import { tools } from "./tools.mjs";

const page = fileURLToPath(new URL("../../docs/compatibility.md", import.meta.url));
const protocols = {
  messages: "Messages",
  chat: "chat completions",
  responses: "Responses",
  socket: "Responses, WebSocket",
  mixed: "Responses bodies at the path of chat completions",
  gemini: "Gemini",
};

// applies reports whether a tool does what a scenario is about.
const applies = (scenario, tool) => !scenario.when || scenario.when(tool);

// cells returns the results of a tool's row, a list for each family: "tool/family/scenario".
const cells = (kind, tool, all) =>
  families.map((f) =>
    Object.entries(all)
      .filter(([, s]) => applies(s, tool))
      .map(([id]) => `${kind}/${tool.name}/${f.id}/${id}`),
  );
const table = (rows) => {
  const line = (row) => `| ${row.join(" | ")} |`;
  return [line(rows[0]), line(rows[0].map(() => "---")), ...rows.slice(1).map(line)].join("\n");
};
const titles = (all) =>
  Object.values(all)
    .map((s) => `- ${s.title}${s.only ? ` (${s.only})` : ""}`)
    .join("\n");

// render returns the document; mark returns the text of a cell.
function render(mark) {
  const names = families.map((f) => f.name);
  const guide = (t) => `[${t.name}](guides/${t.id}.md)`;
  return `# Compatibility

<!-- Written by GOLDEN=update ./build.sh soak from the results of test/clients. -->

The tests run tools against the gateway, in workerd and as the native server, over each family of upstreams. An upstream of the tests follows rules instead of a model, and refuses what the vendor would: a call without a result, a changed signature, roles that do not alternate.

✓ means that everything below the table holds on both platforms.

## Tools that are run

These are the tools as npm carries them, configured by the [set-up command](clients.md#the-command) and run without a terminal. Their network has the loopback interface alone; every connection to another address is refused and fails the test. At their defaults the tools call hosts of their own; the tests turn that off with the settings of the last column.

${table([
  ["Tool", "Version", ...names, "Settings"],
  ...clis.map((c) => [guide(c), c.version, ...cells("run", c, runs).map(mark), c.settings]),
])}

The tool

${titles(runs)}

Claude Code is not among them: its license reserves all rights and refers to Anthropic's terms. Its conversations are below.

## Conversations that are played

The tests speak as these tools do according to their documentation or source, of the version or day in the second column: path, headers, fields, tools, what goes back in the next turn, and how the tool recognizes that a conversation is too long. Streams are read strictly.

${table([
  ["Tool", "Of", "Protocol", ...names],
  ...tools.map((t) => [guide(t), t.read, protocols[t.driver], ...cells("play", t, scenarios).map(mark)]),
])}

The tests play

${titles(scenarios)}

Thoughts of OpenAI's models return with their signatures to clients of the Responses API only; others get summaries. The details of each protocol are in [reference/clients.md](reference/clients.md).
`;
}

const read = () => {
  const file = process.env.CLIENTS_RESULTS;
  if (!file || !existsSync(file)) return new Map();
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return new Map(lines.map((l) => JSON.parse(l)));
};

// record notes that a scenario was played, for the table.
export function record(kind, tool, family, scenario, passed) {
  const file = process.env.CLIENTS_RESULTS;
  if (file) appendFileSync(file, JSON.stringify([`${kind}/${tool.name}/${family.id}/${scenario}`, passed]) + "\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const results = read();
  const update = process.env.GOLDEN === "update";
  const missing = [];
  // A scenario that was not played counts as it does in the document.
  const text = render((ids) => {
    const failed = ids.filter((id) => results.get(id) === false);
    missing.push(...ids.filter((id) => !results.has(id)));
    return failed.length ? failed.map((id) => id.split("/").at(-1)).join(", ") : "✓";
  });
  if (update) {
    if (missing.length) throw new Error(`not played (SOAK=1 plays everything): ${missing.slice(0, 5).join(", ")} …`);
    writeFileSync(page, text);
  } else if (!existsSync(page) || readFileSync(page, "utf8") !== text) {
    console.error(
      "docs/compatibility.md is not current: run GOLDEN=update ./build.sh soak, or ./build.sh clients with SOAK=1",
    );
    process.exit(1);
  }
  console.log(`docs/compatibility.md is current; ${results.size} scenarios were played`);
}
