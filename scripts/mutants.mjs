// Prints a report of the mutation tester: the mutants that lived, by file and
// line, those whose tests waited for too long, then the killed share of the others.
//
//	mutants.mjs REPORT FOLDER
import { readFileSync } from "node:fs";

const [report, folder] = process.argv.slice(2);
const { files } = JSON.parse(readFileSync(report, "utf8"));
const mutants = files.flatMap((f) => {
  const lines = readFileSync(`${folder}/${f.file_name}`, "utf8").split("\n");
  const tried = (m) => m.status !== "NOT COVERED" || !passive(lines, m.line);
  return f.mutations.filter(tried).map((m) => ({ ...m, file: f.file_name }));
});

// passive reports whether a line is the head of a case, or belongs to a
// constant or variable of the package. Coverage counts statements alone, so the
// tester never changes such a line.
function passive(lines, line) {
  if (/^\s*case\b/.test(lines[line - 1])) return true;
  while (line > 1 && /^\s/.test(lines[line - 1])) line--;
  return /^(const|var)\b/.test(lines[line - 1]);
}

const of = (...statuses) => mutants.filter((m) => statuses.includes(m.status));
const killed = of("KILLED").length,
  waited = of("TIMED OUT"),
  alive = of("LIVED", "NOT COVERED");
for (const m of [...alive, ...waited].sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line))
  console.log(`${folder}/${m.file}:${m.line}:${m.column} ${m.type.toLowerCase()} ${m.status.toLowerCase()}`);
const share = ((100 * killed) / (killed + alive.length)).toFixed(1);
console.log(
  `${folder}: ${share} % killed, ${killed} of ${killed + alive.length}${waited.length ? `, ${waited.length} timed out` : ""}`,
);
