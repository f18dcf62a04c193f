// ./build.sh deploy: builds, says what is uploaded, sets the secrets that are
// missing, deploys, and examines what answers. docs/deploying.md describes it. With
// DRY_RUN=1 nothing leaves this computer.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { gzipSync } from "node:zlib";
import { examine, options } from "./doctor.mjs";
import { names, optional, random, refusal } from "./secrets.mjs";
import { output, root, wrangler } from "./wrangler.mjs";

const noSuchWorker = 10007; // code of the platform's API
const MiB = 1 << 20;
const maxSize = 64 * MiB; // of the program, uncompressed, on every plan
const maxStart = 1000; // ms of CPU
const readyMs = 120_000; // until a new address answers

const env = process.env;
const dry = /^(1|true|yes)$/i.test(env.DRY_RUN ?? "");
const dir = env.STATE_DIR ? resolve(env.STATE_DIR) : join(root, ".weir");
const answersFile = join(dir, "deploy.json");
const secretsFile = join(dir, `secrets-${process.pid}.json`);
const reportFile = join(dir, `deployed-${process.pid}.ndjson`);
const profileFile = join(dir, `startup-${process.pid}.cpuprofile`);
const configName = `wrangler-deploy-${process.pid}.toml`;
const temporary = [secretsFile, reportFile, profileFile, join(root, configName)];

// stop ends the command with one line.
function stop(text) {
  console.error(`deploy: ${text}`);
  process.exit(1);
}

// placement returns the lines of [placement] for a REGION, or null.
function placement(region) {
  if (region === "" || region === "off") return "";
  if (region === "smart") return 'mode = "smart"';
  if (/^(aws|gcp|azure):[a-z0-9-]+$/.test(region)) return `region = "${region}"`;
  if (/^[a-z0-9-]+(\.[a-z0-9-]+)+:\d{1,5}$/.test(region)) return `host = "${region}"`;
  if (/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(region)) return `hostname = "${region}"`;
  return null;
}

const isDomain = (domain) => domain === "" || /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(domain);

// read returns REGION and DOMAIN: of the environment, of the last deployment, or
// asked for on a terminal.
async function read() {
  let last = {};
  try {
    last = JSON.parse(readFileSync(answersFile, "utf8"));
  } catch {
    // the first deployment
  }
  const where = { region: env.REGION ?? last.region, domain: env.DOMAIN ?? last.domain };
  if (process.stdin.isTTY && process.stdout.isTTY && !dry) {
    const ask = createInterface({ input: process.stdin, output: process.stdout });
    where.region ??= (
      await ask.question("Where weir runs: empty for near each caller, smart, or near a region such as aws:us-east-1: ")
    ).trim();
    where.domain ??= (await ask.question("A domain of your Cloudflare account (empty for workers.dev): ")).trim();
    ask.close();
  }
  where.region ??= "";
  where.domain ??= "";
  if (placement(where.region) === null)
    stop(
      `REGION is ${JSON.stringify(where.region)}; it is smart, off, a region such as aws:us-east-1, gcp:europe-west1 or azure:westeurope, or the name of a host`,
    );
  if (!isDomain(where.domain))
    stop(`DOMAIN is ${JSON.stringify(where.domain)}; it is a name such as weir.example.com, without https://`);
  return where;
}

// config returns the settings of this deployment: wrangler.toml with its place, and
// with the KV namespace that a deployment created which then failed to upload.
function config(region, namespace) {
  let toml = readFileSync(join(root, "wrangler.toml"), "utf8");
  if (namespace && !/^\s*id = /m.test(toml)) toml = toml.replace('binding = "KV"\n', `$&id = "${namespace}"\n`);
  const lines = placement(region);
  if (!lines) return toml;
  if (/^\s*\[placement\]/m.test(toml)) stop("wrangler.toml has [placement] and REGION is set; remove one of them");
  return `${toml}\n[placement]\n${lines}\n`;
}

// listOf returns the array that wrangler prints, or null.
function listOf({ code, stdout }) {
  try {
    return code === 0 ? JSON.parse(stdout.slice(stdout.indexOf("["))) : null;
  } catch {
    return null;
  }
}

// present returns the names of the worker's secrets, or null if there is no worker.
async function present() {
  const listed = await output(["secret", "list", "--format", "json"]),
    list = listOf(listed);
  if (list) return list.map((s) => s.name);
  if ((listed.stdout + listed.stderr).includes(`code: ${noSuchWorker}`)) return null;
  process.stderr.write(listed.stderr || listed.stdout);
  return stop("the worker's secrets could not be listed; sign in with npx wrangler login, or set CLOUDFLARE_API_TOKEN");
}

// leftNamespace returns the id of the namespace that wrangler creates for a new
// worker, if there is one without a worker, or "". wrangler would fail to create it.
async function leftNamespace() {
  const list = listOf(await output(["kv", "namespace", "list"]));
  return list?.find((n) => n.title === "weir-kv")?.id ?? "";
}

// describe prints what is uploaded, and what it needs.
async function describe(region) {
  const files = readdirSync(join(root, "build")).filter((n) => /\.(mjs|js|wasm)$/.test(n));
  const all = files.map((n) => readFileSync(join(root, "build", n)));
  const size = all.reduce((n, b) => n + b.length, 0);
  const gzipped = gzipSync(Buffer.concat(all)).length;
  const mib = (n) => `${(n / MiB).toFixed(1)} MiB`;
  console.log(`size      ${mib(size)} of ${maxSize / MiB} MiB, ${mib(gzipped)} gzipped`);
  if (size > maxSize) stop("the program is larger than the platform accepts");
  const { code, stdout, stderr } = await output(["check", "startup", "--config", configName, "--outfile", profileFile]);
  const active = /Active: ([\d.]+) ms/.exec(stdout);
  if (code === 0 && active)
    console.log(
      `start-up  ${Math.round(active[1])} ms of CPU here; the platform allows ${maxStart} ms on its computers`,
    );
  else console.log(`start-up  not measured: ${firstError(stderr || stdout) || "this wrangler does not report it"}`);
  console.log(`plan      free: for trying, a request has 10 ms of CPU, which the first one of an isolate
          and long streams exceed; Workers Paid ($5 a month): everything`);
  console.log(`place     ${region && region !== "off" ? region : "near each caller"}; REGION changes it`);
}

// firstError returns the first line of wrangler's error.
const firstError = (text) => /ERROR\S*\s+(.+)/.exec(text)?.[1].trim() ?? "";

// chosen returns the secrets to upload: those that are missing, and the optional ones
// of the environment. Existing ones of weir are never replaced: without the earlier
// CREDENTIALS_KEY no stored credential opens.
function chosen(existing) {
  const missing = names.filter((n) => !existing.includes(n));
  const values = random(missing);
  for (const name of missing) if (env[name]) values[name] = env[name];
  for (const name of optional) if (env[name]) values[name] = env[name];
  for (const name of ["API_KEY_SECRET", "CREDENTIALS_KEY"])
    if (env[name] && existing.includes(name)) console.log(`${name} exists and stays as it is`);
  return values;
}

let child = null; // wrangler
const stopped = { visit: null }; // the doctor's

function run(args) {
  return new Promise((resolve) => {
    child = wrangler(args, { env: { ...env, WRANGLER_OUTPUT_FILE_PATH: reportFile } }).on("close", (code) =>
      resolve(code ?? 1),
    );
  });
}

// addresses returns where the worker answers, as wrangler reports it.
function addresses(domain) {
  let targets = [];
  try {
    for (const line of readFileSync(reportFile, "utf8").split("\n").filter(Boolean)) {
      const entry = JSON.parse(line);
      if (entry.type === "deploy") targets = entry.targets ?? [];
    }
  } catch {
    // an older wrangler
  }
  return [
    ...(domain ? [`https://${domain}`] : []),
    ...targets.filter((t) => /^https?:/.test(t)).map((t) => new URL(t).origin),
  ];
}

const showToken = (token) => console.log(`\nThe operator's token, shown this once:\n\n  ${token}\n`);

async function main() {
  if (process.argv.length > 2)
    stop(`takes no arguments, not ${process.argv[2]}; settings are variables, such as DRY_RUN=1`);
  if (!dry && !/^(|0|false|no)$/i.test(env.DRY_RUN ?? "")) stop(`DRY_RUN is 1 or 0, not ${env.DRY_RUN}`);
  const wrong = refusal(env);
  if (wrong) stop(wrong);
  const where = await read();
  config(where.region, ""); // ends with the error before anything is built
  const existing = dry ? [] : await present(),
    text = config(where.region, existing ? "" : await leftNamespace());
  if (env.BUILT !== "1" && spawnSync(join(root, "scripts/build.sh"), { stdio: "inherit" }).status !== 0)
    stop("the build failed; its error is above");
  mkdirSync(dir, { recursive: true });
  // Files of an earlier run that was killed.
  for (const name of readdirSync(dir)) if (/^secrets-\d+\.json$/.test(name)) rmSync(join(dir, name), { force: true });
  writeFileSync(join(root, configName), text);
  await describe(where.region);
  const args = ["deploy", "--config", configName, ...(where.domain ? ["--domain", where.domain] : [])];
  if (dry) {
    console.log(`dry run: would set ${names.join(", ")} where missing`);
    return run([...args, "--dry-run"]);
  }
  const values = chosen(existing ?? []);
  if (Object.keys(values).length) {
    writeFileSync(secretsFile, JSON.stringify(values), { mode: 0o600 });
    args.push("--secrets-file", secretsFile);
  }
  const code = await run(args);
  rmSync(secretsFile, { force: true });
  const fresh = values.ADMIN_TOKEN && values.ADMIN_TOKEN !== env.ADMIN_TOKEN ? values.ADMIN_TOKEN : "";
  if (code !== 0) {
    // A later step, such as the domain, may have failed after the secrets were set.
    if (fresh && (await present())?.includes("ADMIN_TOKEN")) showToken(fresh);
    stop(`wrangler failed, its error is above; correct that and run this again, which changes no secret that exists`);
  }
  writeFileSync(answersFile, JSON.stringify(where));
  if (fresh) showToken(fresh);
  const [url] = addresses(where.domain);
  if (!url) {
    console.log("deployed; wrangler reported no address: run ./build.sh doctor URL");
    return 0;
  }
  const version = existsSync(join(root, "build/VERSION"))
    ? readFileSync(join(root, "build/VERSION"), "utf8").trim()
    : "";
  console.log(`examining ${url}`);
  const known = { ...options(url), token: values.ADMIN_TOKEN ?? env.ADMIN_TOKEN ?? "", version };
  if (!(await examine(url, known, { until: Date.now() + readyMs, stopped }))) return 0;
  console.error(
    `deploy: it is deployed, and the doctor found the above; correct it, then run ./build.sh doctor ${url}`,
  );
  return 1;
}

const remove = () => {
  for (const file of temporary) rmSync(file, { force: true });
};
// A signal ends wrangler, whose end is waited for, or the doctor, which cleans up.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, async () => {
    remove();
    if (child?.exitCode === null) return child.kill(signal);
    await stopped.visit?.cleanUp().catch((e) => console.log(`FAIL  clean-up: ${e.message}`));
    process.exit(1);
  });
process.on("exit", remove);
process.exitCode = await main();
