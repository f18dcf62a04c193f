// Runs wrangler with the Node that runs this.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));
// WRANGLER names another script in its place.
const cli =
  process.env.WRANGLER || fileURLToPath(new URL("../../node_modules/wrangler/bin/wrangler.js", import.meta.url));

// wrangler starts it; options are those of spawn.
export const wrangler = (args, options = {}) =>
  spawn(process.execPath, [cli, ...args], { cwd: root, stdio: "inherit", ...options });

// output runs it to its end and returns {code, stdout, stderr}.
export function output(args) {
  return new Promise((resolve, reject) => {
    const child = wrangler(args, { stdio: ["ignore", "pipe", "pipe"] });
    const got = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"])
      child[name].setEncoding("utf8").on("data", (text) => {
        got[name] += text;
      });
    child.on("error", reject).on("close", (code) => resolve({ code, ...got }));
  });
}
