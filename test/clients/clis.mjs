// The command-line tools that cli.test.mjs runs, as npm installs them from
// cli/package-lock.json.
//
//	id, name      id is that of pkg/setup/tools.go, whose command configures the tool
//	version       of the lock file
//	families      of families.mjs: those that every run of the tests uses
//	command(o)    the program and its arguments: o has prompt, image, resume, url
//	env, prepare(home)   variables and settings without which it calls hosts of its own,
//	              which settings names for docs/compatibility.md; and what the guide says
//	              of models that accept pictures
//	compacts(o)   what it does with a conversation that is too long; o as in scenarios
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../e2e/wait.mjs";

const modules = fileURLToPath(new URL("cli/node_modules/", import.meta.url));
const arch = process.arch === "arm64" ? "arm64" : "x64";
const lock = JSON.parse(await readFile(new URL("cli/package-lock.json", import.meta.url), "utf8"));
const version = (name) => lock.packages[`node_modules/${name}`].version.replace(/-linux.*/, "");

// edit changes a JSON file.
async function edit(file, change) {
  const settings = JSON.parse(await readFile(file, "utf8"));
  change(settings);
  await writeFile(file, JSON.stringify(settings));
}
const codex = join(
  modules,
  `@openai/codex-linux-${arch}/vendor/${arch === "arm64" ? "aarch64" : "x86_64"}-unknown-linux-musl/bin/codex`,
);
const codexCommand = ({ prompt, image, resume, catalog, url }, more = []) => [
  codex,
  "exec",
  ...(resume ? ["resume", "--last"] : []),
  "--skip-git-repo-check",
  "--dangerously-bypass-approvals-and-sandbox",
  ...[
    "-c",
    "analytics.enabled=false",
    "-c",
    "check_for_update_on_startup=false",
    "--disable",
    "plugins",
    "--disable",
    "apps",
  ],
  ...(catalog ? ["-c", `model_providers.weir.model_catalog_url="${url}/v1/models"`] : []),
  ...more,
  ...(image ? ["-i", image] : []),
  "--",
  prompt,
];

// compactsNext: Codex ends a turn whose conversation is too long, and begins the next
// one with a summary of its own.
async function compactsNext({ run, seen }) {
  const first = await run({ prompt: "Go on. @@full@@" });
  assert.match(first.out, /ran out of room in the model's context window/);
  const { code, out } = await run({ prompt: "Go on. @@say more@@", resume: true });
  assert.equal(code, 0, out);
  assert.match(out, /context compacted/);
  assert.match(out, /You said: more/);
  assert.ok(seen().some((q) => q.turns.some((t) => t.text.includes("SUMMARY"))));
}

// compactsAtOnce: OpenCode asks for a summary and goes on with it.
async function compactsAtOnce({ run, seen }) {
  const { out } = await run({ prompt: "Go on. @@full@@" });
  assert.match(out, /Going on/);
  assert.ok(
    seen()
      .at(-1)
      .turns.some((t) => t.text.includes("SUMMARY")),
  );
}

// listed: with the address of the list Codex knows the model, and says nothing of
// metadata that is not found.
async function listed({ ask }) {
  const unknown = /Model metadata for .* not found/;
  assert.match(await ask("@@say a@@"), unknown);
  assert.doesNotMatch(await ask("@@say a@@", { catalog: true }), unknown);
}

export const clis = [
  {
    id: "codex",
    name: "Codex CLI",
    version: version("@openai/codex-linux-x64"),
    families: ["openai", "an"],
    command: codexCommand,
    settings: "`analytics.enabled`, `check_for_update_on_startup`, features `plugins` and `apps` off",
    compacts: compactsNext,
    listed,
  },
  {
    id: "codex",
    name: "Codex CLI, WebSocket",
    version: version("@openai/codex-linux-x64"),
    families: ["up"],
    command: (o) => codexCommand(o, ["-c", "model_providers.weir.supports_websockets=true"]),
    settings: "as above",
    compacts: compactsNext,
  },
  {
    id: "gemini-cli",
    name: "Gemini CLI",
    version: version("@google/gemini-cli"),
    families: ["gemini", "openai"],
    command: ({ prompt, image, resume }) => [
      process.execPath,
      join(modules, "@google/gemini-cli/bundle/gemini.js"),
      "--yolo",
      "--skip-trust",
      ...(resume ? ["--resume", "latest"] : []),
      "-p",
      image ? `@${image} ${prompt}` : prompt,
    ],
    prepare: (home) =>
      edit(join(home, ".gemini/settings.json"), (s) => {
        s.privacy = { usageStatisticsEnabled: false };
        s.general = { enableAutoUpdate: false };
      }),
    settings: "`privacy.usageStatisticsEnabled` off",
  },
  {
    id: "opencode",
    name: "OpenCode",
    version: version("opencode-linux-x64"),
    families: ["up", "anthropic"],
    command: ({ prompt, image, resume }) => [
      join(modules, `opencode-linux-${arch}/bin/opencode`),
      "run",
      "--auto",
      ...(resume ? ["--continue"] : []),
      prompt,
      ...(image ? ["-f", image] : []),
    ],
    // It installs a package of its own into the folder of its settings, from a
    // registry that is to be on this computer then: nothing listens there.
    env: {
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      NPM_CONFIG_REGISTRY: "http://127.0.0.1:9/",
    },
    prepare: (home) =>
      edit(join(home, ".config/opencode/opencode.json"), (s) => {
        for (const m of Object.values(s.provider.weir.models))
          Object.assign(m, { attachment: true, modalities: { input: ["text", "image"], output: ["text"] } });
      }),
    compacts: compactsAtOnce,
    settings: "`OPENCODE_DISABLE_MODELS_FETCH`, `OPENCODE_DISABLE_AUTOUPDATE`, `NPM_CONFIG_REGISTRY`",
  },
  {
    id: "qwen-code",
    name: "Qwen Code",
    version: version("@qwen-code/qwen-code"),
    families: ["up", "gemini"],
    command: ({ prompt, image, resume }) => [
      process.execPath,
      join(modules, "@qwen-code/qwen-code/cli-entry.js"),
      "--yolo",
      ...(resume ? ["--continue"] : []),
      "-p",
      image ? `@${image} ${prompt}` : prompt,
    ],
    env: { QWEN_CODE_SUPPRESS_YOLO_WARNING: "1" },
    prepare: (home) =>
      edit(join(home, ".qwen/settings.json"), (s) => {
        s.privacy = { usageStatisticsEnabled: false };
        s.general = { disableAutoUpdate: true };
        for (const m of s.modelProviders.openai) m.generationConfig = { modalities: { image: true } };
      }),
    settings: "`privacy.usageStatisticsEnabled` off",
  },
];

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

// scenarios are what a tool does, over one family of upstreams. Every run of the tests
// plays the first over two families, and the short ones over one. play gets
//
//	ask(prompt, options)   runs the tool and returns its outputs
//	begin, run(options)    start it: {interrupt, done}, or {code, out} of its end
//	read, write            files of its folder
//	seen()                 the conversations that reached the upstream
export const scenarios = {
  tools: {
    title: "runs a command and says its result",
    async play({ ask, read }) {
      assert.match(await ask("Run it. @@run echo weir | tee out.txt@@"), /It is /);
      assert.equal(await read("out.txt"), "weir\n");
    },
  },
  parallel: {
    title: "runs two commands of one turn",
    async play({ ask, read }) {
      assert.match(await ask("Both. @@both echo one | tee 1.txt ;; echo two | tee 2.txt@@"), /They are .* and /s);
      assert.deepEqual([await read("1.txt"), await read("2.txt")], ["one\n", "two\n"]);
    },
  },
  resumed: {
    title: "continues a session in another process, with its thoughts and calls",
    async play({ ask, read }) {
      assert.match(await ask("Think. @@think echo weir | tee out.txt@@"), /It is /);
      assert.equal(await read("out.txt"), "weir\n");
      assert.match(await ask("Go on. @@say more@@", { resume: true }), /You said: more/);
    },
  },
  images: {
    title: "shows a picture",
    async play({ ask, write }) {
      const image = await write("dot.png", Buffer.from(png, "base64"));
      assert.match(await ask("Look. @@look@@", { image }), /I see image\/\w+ of \d+ bytes/);
    },
  },
  compaction: {
    title: "recognizes that a conversation is too long, and compacts it",
    only: "Codex CLI, OpenCode",
    when: (cli) => cli.compacts,
    short: true,
    play: (o) => o.cli.compacts(o),
  },
  models: {
    title: "reads the list of models",
    only: "Codex CLI",
    when: (cli) => cli.listed,
    short: true,
    play: (o) => o.cli.listed(o),
  },
  limit: {
    title: "waits for a rate limit",
    async play({ ask }) {
      assert.match(await ask("Hurry. @@limit@@"), /Served/);
    },
  },
  aborts: {
    title: "is interrupted, and the upstream is left",
    async play({ begin, seen }) {
      const { interrupt, done } = begin({ prompt: "Slowly. @@slow@@" });
      const slow = await until("the answer streams", () =>
        seen().find((q) => q.turns.some((t) => t.text.includes("@@slow@@"))),
      );
      interrupt();
      await done;
      await until("the upstream is left", () => slow.request.aborted);
    },
  },
};
