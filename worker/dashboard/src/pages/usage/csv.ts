// csv returns a table as CSV. Texts that a spreadsheet would run as a formula are
// prefixed with an apostrophe (OWASP, "CSV Injection"); numbers stay numbers.
export function csv(head: string[], rows: (string | number)[][]): string {
  const cell = (v: string | number) => {
    if (typeof v === "number") return Number.isFinite(v) ? String(v) : "";
    const safe = /^[\s\u0000-\u001f]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(v) || /^[\t\r\n]/.test(v) ? `'${v}` : v;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  return `\ufeff${[head, ...rows].map((r) => `${r.map(cell).join(",")}\r\n`).join("")}`;
}
