// The objects' storage on disk, for tests: reading all rows, changing them, and
// letting time pass.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const files = (dir) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((f) => f.name.endsWith(".sqlite") && f.name !== "metadata.sqlite" && f.parentPath.includes("weir-Machine"))
    .map((f) => join(f.parentPath, f.name));

// rows returns every row of every object: { file, key, value }, the value as
// latin-1 text. It may be read while the worker runs.
export function rows(dir) {
  const out = [];
  for (const file of files(dir)) {
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      if (!db.prepare("select 1 from sqlite_master where name = '_cf_KV'").get()) continue;
      for (const { key, value } of db.prepare("select key, value from _cf_KV").all())
        out.push({ file, key, value: Buffer.from(value).toString("latin1") });
    } finally {
      db.close();
    }
  }
  return out;
}

// elapse moves the objects' hourly work to ms ago, and removes their alarms, as
// if these had been lost. The worker must be down.
export function elapse(dir, ms) {
  for (const file of files(dir)) {
    const db = new DatabaseSync(file);
    try {
      const meta = db.prepare("select value from _cf_KV where key = 'meta'").get();
      if (!meta) continue;
      const at = String(Date.now() - ms),
        text = Buffer.from(meta.value).toString("latin1");
      if (at.length !== 13) throw new Error("the length of the row would change");
      const moved = text.replace(/"(pruneAt|alarmAt)":\d{13}/g, `"$1":${at}`);
      db.prepare("update _cf_KV set value = ? where key = 'meta'").run(Buffer.from(moved, "latin1"));
      if (db.prepare("select 1 from sqlite_master where name = '_cf_METADATA'").get())
        db.exec("delete from _cf_METADATA"); // the alarm
    } finally {
      db.close();
    }
  }
}

// edit changes rows: change(key, text) returns the new text of a row, of the
// same length. The worker must be down.
export function edit(dir, change) {
  for (const file of files(dir)) {
    const db = new DatabaseSync(file);
    try {
      if (!db.prepare("select 1 from sqlite_master where name = '_cf_KV'").get()) continue;
      for (const { key, value } of db.prepare("select key, value from _cf_KV").all()) {
        const text = Buffer.from(value).toString("latin1"),
          now = change(key, text);
        if (now.length !== text.length) throw new Error(`the length of ${key} would change`);
        if (now !== text) db.prepare("update _cf_KV set value = ? where key = ?").run(Buffer.from(now, "latin1"), key);
      }
    } finally {
      db.close();
    }
  }
}
