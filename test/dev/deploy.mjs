// ./build.sh deploy: uploads the secrets that the deployed worker lacks, then
// deploys. With DRY_RUN=1 it makes no network call.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { names, random } from "./secrets.mjs";
import { output, root, wrangler } from "./wrangler.mjs";

const noSuchWorker = 10007; // code of the platform's API

async function missing() {
  const { code, stdout, stderr } = await output(["secret", "list", "--format", "json"]);
  if (code === 0) {
    const present = JSON.parse(stdout.slice(stdout.indexOf("["))).map((s) => s.name);
    return names.filter((n) => !present.includes(n));
  }
  if ((stdout + stderr).includes(`code: ${noSuchWorker}`)) return names;
  process.stderr.write(stderr || stdout);
  console.error("the worker's secrets could not be listed; is wrangler logged in? (npx wrangler login)");
  process.exit(1);
}

let child = null;

function deploy(args) {
  return new Promise((resolve) => {
    child = wrangler(["deploy", ...args]).on("close", (code) => resolve(code ?? 1));
  });
}

if (process.env.DRY_RUN === "1") {
  console.log(`dry run: would set ${names.join(", ")} where missing`);
  process.exit(await deploy(["--dry-run"]));
}

const values = random(await missing()),
  args = [],
  dir = join(root, ".weir");
// Removes the files of an earlier run that was killed.
if (existsSync(dir))
  for (const name of readdirSync(dir)) if (/^secrets-\d+\.json$/.test(name)) rmSync(join(dir, name), { force: true });
const file = join(dir, `secrets-${process.pid}.json`);
if (Object.keys(values).length) {
  mkdirSync(dir, { recursive: true });
  writeFileSync(file, JSON.stringify(values), { mode: 0o600 });
  args.push("--secrets-file", file);
}
// A signal ends wrangler, whose end is waited for below.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => {
    rmSync(file, { force: true });
    child?.kill(signal);
  });
process.on("exit", () => rmSync(file, { force: true }));
let code = 1;
try {
  code = await deploy(args);
} finally {
  rmSync(file, { force: true });
}
if (code === 0 && values.ADMIN_TOKEN) {
  console.log(`\nThe operator's token, shown this once:\n\n  ${values.ADMIN_TOKEN}\n`);
}
process.exit(code);
