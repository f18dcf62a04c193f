// The OpenAPI document is good enough for a generator that others wrote: types of every
// operation, which a strict compiler accepts, also where a client uses them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const root = join(import.meta.dirname, "../..");
const packages = join(import.meta.dirname, "cli/node_modules");
const document = join(root, "docs/reference/openapi.json");

// use is a client that reads and writes with the generated types.
const use = `
import type { operations, paths } from "./types.js";

type Json<R> = R extends { content: { "application/json": infer T } } ? T : never;
type Keys = Json<paths["/api/keys"]["get"]["responses"][200]>;
type KeyInput = Json<NonNullable<operations["createKey"]["requestBody"]>>;
type Comparison = Json<NonNullable<operations["compareSecrets"]["requestBody"]>>;

export const input: KeyInput = { name: "laptop", rpm: 5 };
export const compared: Comparison = { accounts: { id: { apiKey: "x" } } };
export const names = (list: Keys) => list.data.map((k) => k.name);
// @ts-expect-error a number is no name
export const wrong: KeyInput = { name: 5 };
`;

test("a generator makes types of every operation, which compile", () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-openapi-"));
  try {
    const node = (...args) => execFileSync(process.execPath, args, { cwd: folder, encoding: "utf8", stdio: "pipe" });
    node(join(packages, "openapi-typescript/bin/cli.js"), document, "-o", "types.ts");
    const types = readFileSync(join(folder, "types.ts"), "utf8");
    let count = 0;
    for (const [path, methods] of Object.entries(JSON.parse(readFileSync(document, "utf8")).paths))
      for (const [method, { operationId }] of Object.entries(methods)) {
        if (!operationId) continue;
        count++;
        assert.match(types, new RegExp(`operations\\["${operationId}"\\]`), `${method} ${path}`);
      }
    assert.ok(count > 80, `only ${count} operations`);
    writeFileSync(join(folder, "use.ts"), use);
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const strict = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"];
    node(join(packages, "typescript/bin/tsc"), ...strict, "use.ts");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
