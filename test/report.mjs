// Reads what the test runners wrote.
//
//	report.mjs unit FILE               prints the output of failures and the total of the unit tests
//	report.mjs total STEPS NAME=FILE…  prints "N passed, N failed" over all: the unit tests first,
//	                                   then runs of node; STEPS failed besides
import { readFileSync } from "node:fs";

const [mode, ...args] = process.argv.slice(2);

// goTests reads the events of `go test -json`.
function goTests(file) {
  const events = lines(file).map((l) => {
    try {
      return JSON.parse(l);
    } catch {
      return { Action: "output", Package: "", Output: l + "\n" };
    }
  });
  const output = new Map(),
    count = { pass: 0, fail: 0 };
  const parents = new Set(
    events.filter((e) => e.Test?.includes("/")).map((e) => e.Package + " " + e.Test.slice(0, e.Test.lastIndexOf("/"))),
  );
  for (const e of events) {
    const key = `${e.Package ?? e.ImportPath ?? ""} ${e.Test ?? ""}`;
    if (e.Action === "output" || e.Action === "build-output") output.set(key, (output.get(key) ?? "") + e.Output);
    if (e.Action === "build-fail" && mode === "unit") console.log(output.get(key));
    if (e.Action !== "pass" && e.Action !== "fail") continue;
    if (e.Test) {
      if (!parents.has(key)) count[e.Action]++;
      else if (e.Action === "fail") count.parentFailed = true;
    } else if (e.Action === "fail" && !events.some((x) => x.Package === e.Package && x.Test && x.Action === "fail")) {
      count.fail++; // a package that failed outside any test: build, init, exit
    }
    if (e.Action === "fail" && mode === "unit") console.log(`--- ${key}\n${output.get(key) ?? ""}`);
  }
  return count;
}

// tapTests reads the totals that node's TAP reporter ends with.
function tapTests(file) {
  const total = (name) =>
    Number(
      lines(file)
        .findLast((l) => l.startsWith(`# ${name} `))
        ?.split(" ")[2] ?? 0,
    );
  return {
    pass: total("pass"),
    fail: total("fail") + total("cancelled"),
    skipped: total("skipped"),
    ran: total("tests"),
  };
}

function lines(file) {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
}

if (mode === "unit") {
  const { pass, fail } = goTests(args[0]);
  console.log(`${pass} unit tests passed, ${fail} failed`);
  process.exit(fail || !pass ? 1 : 0);
}
const [steps, ...files] = args;
const runs = files.map((arg) => {
  const at = arg.indexOf("="),
    file = arg.slice(at + 1);
  return { name: arg.slice(0, at), ran: 1, skipped: 0, ...(file.endsWith(".json") ? goTests(file) : tapTests(file)) };
});
const sum = (name) => runs.reduce((n, r) => n + r[name], 0);
const fail = Math.max(sum("fail"), Number(steps)); // a step such as vet counts when no test failed
console.log(
  runs
    .map((r) => `${r.name}: ${r.pass} passed, ${r.fail} failed${r.skipped ? `, ${r.skipped} skipped` : ""}`)
    .join("; "),
);
console.log(`${sum("pass")} passed, ${fail} failed`);
process.exit(fail || runs.some((r) => !r.ran || !r.pass) ? 1 : 0);
