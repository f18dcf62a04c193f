// Reads what the test runners wrote.
//
//	report.mjs unit FILE             prints the output of failures and the total of the unit tests
//	report.mjs total UNIT TAP TAP STEPS  prints "N passed, N failed" over all: unit tests, end to
//	                                     end, dashboard; STEPS failed besides
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
  return { pass: total("pass"), fail: total("fail") + total("cancelled"), ran: total("tests") };
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
const unit = goTests(args[0]),
  e2e = tapTests(args[1]),
  pages = tapTests(args[2]);
const pass = unit.pass + e2e.pass + pages.pass,
  failedTests = unit.fail + e2e.fail + pages.fail;
const fail = Math.max(failedTests, Number(args[3])); // a step such as vet counts when no test failed
console.log(
  `unit: ${unit.pass} passed, ${unit.fail} failed; end to end: ${e2e.pass} passed, ${e2e.fail} failed; dashboard: ${pages.pass} passed, ${pages.fail} failed`,
);
console.log(`${pass} passed, ${fail} failed`);
process.exit(fail || !unit.pass || !e2e.ran || !pages.ran ? 1 : 0);
