// csv writes a table for a spreadsheet. A text that a spreadsheet would take for
// a formula gets an apostrophe in front (OWASP, "CSV Injection"); numbers stay
// numbers.
export function csv(head: string[], rows: (string | number)[][]): string {
  const cell = (v: string | number) => {
    if (typeof v === "number") return Number.isFinite(v) ? String(v) : "";
    const safe = /^[\s\u0000-\u001f]*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(v) || /^[\t\r\n]/.test(v) ? "'" + v : v;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  return "\ufeff" + [head, ...rows].map((r) => r.map(cell).join(",") + "\r\n").join("");
}

// download hands a text to the browser as a file.
export function download(name: string, type: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
