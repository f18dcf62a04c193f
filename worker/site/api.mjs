// The page of the API reference, made from the OpenAPI document.

const quoted = (s) =>
  String(s).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const name = (ref) => ref.slice(ref.lastIndexOf("/") + 1);
const tagId = (tag) => `tag-${tag.toLowerCase().replace(/\W+/g, "-")}`;

// kind describes a schema in a few characters.
function kind(schema) {
  if (schema === undefined || schema === true) return "any";
  if (schema.$ref) return `<a href="#schema-${name(schema.$ref)}">${name(schema.$ref)}</a>`;
  if (schema.const !== undefined) return `<code>${quoted(JSON.stringify(schema.const))}</code>`;
  if (schema.enum) return schema.enum.map((v) => `<code>${quoted(JSON.stringify(v))}</code>`).join(", ");
  if (schema.type === "array") return `array of ${kind(schema.items)}`;
  return [schema.type ?? "any"].flat().join(" or ");
}

function fields(schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(
    ([field, of]) =>
      `<tr><td><code>${quoted(field)}</code>${required.has(field) ? "" : ' <span class="muted">optional</span>'}</td><td>${kind(of)}</td><td>${quoted(of.description ?? "")}</td></tr>`,
  );
  return rows.length === 0
    ? ""
    : `<div class="table" tabindex="0"><table><thead><tr><th>Field</th><th>Type</th><td></td></tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
}

function operation(path, method, op) {
  const out = [
    `<h3 id="${op.operationId}" tabindex="-1"><span class="method">${method.toUpperCase()}</span> <code>${quoted(path)}</code></h3>`,
    `<p>${quoted(op.summary)}.${op.externalDocs ? ` <a href="${quoted(op.externalDocs.url)}">The vendor's description</a>.` : ""}</p>`,
  ];
  const parameters = (op.parameters ?? []).map(
    (p) => `<tr><td><code>${quoted(p.name)}</code></td><td>${p.in}</td><td>${quoted(p.description ?? "")}</td></tr>`,
  );
  if (parameters.length > 0)
    out.push(
      `<div class="table" tabindex="0"><table><thead><tr><th>Parameter</th><th>In</th><td></td></tr></thead><tbody>${parameters.join("")}</tbody></table></div>`,
    );
  const types = (content) =>
    Object.entries(content ?? {})
      .map(([type, { schema }]) => `${schema.$ref ? kind(schema) : ""} <code>${quoted(type)}</code>`)
      .join(", ");
  const lines = [];
  if (op.requestBody)
    lines.push(`Body: ${types(op.requestBody.content)}, ${quoted(op.requestBody.description.replace(/^A/, "a"))}`);
  for (const [status, answer] of Object.entries(op.responses))
    if (status !== "default") lines.push(`${status}: ${types(answer.content) || "no body"}`);
  lines.push(`Errors: <a href="#schema-${name(op.responses.default.$ref)}">${name(op.responses.default.$ref)}</a>`);
  const by = op.security.map((s) => Object.keys(s)[0]);
  lines.push(
    by.length === 0 ? "Needs no key" : `Key: ${by.map((s) => `<a href="#security-${s}">${s}</a>`).join(", ")}`,
  );
  out.push(`<ul>${lines.map((l) => `<li>${l}</li>`).join("")}</ul>`);
  return out.join("\n");
}

// operations returns the page as HTML.
export function operations(document) {
  const all = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, op]) => ({ path, method, op })),
  );
  const out = [
    `<h1 id="api" tabindex="-1">API</h1>`,
    `<p>${quoted(document.info.description)}</p>`,
    `<p>The same as <a href="/openapi.json">OpenAPI 3.1</a>, which a gateway serves at <code>/openapi.json</code>. Every route of <code>/v1</code>, <code>/v1beta</code> and <code>/api</code> exists under <code>/{machineId}</code> too.</p>`,
    `<ul>${document.tags.map((t) => `<li><a href="#${tagId(t.name)}">${quoted(t.name)}</a></li>`).join("")}</ul>`,
    `<h2 id="keys-and-sessions" tabindex="-1">Keys and sessions</h2><ul>`,
    ...Object.entries(document.components.securitySchemes).map(
      ([id, s]) =>
        `<li id="security-${id}"><code>${id}</code>: ${quoted(s.description)}${s.name ? ` (<code>${quoted(s.name)}</code>)` : ""}</li>`,
    ),
    "</ul>",
  ];
  for (const { name: tag } of document.tags) {
    out.push(`<h2 id="${tagId(tag)}" tabindex="-1">${quoted(tag)}</h2>`);
    for (const { path, method, op } of all) if (op.tags[0] === tag) out.push(operation(path, method, op));
  }
  out.push(`<h2 id="schemas" tabindex="-1">Schemas</h2>`);
  for (const [id, schema] of Object.entries(document.components.schemas))
    out.push(
      `<h3 id="schema-${id}" tabindex="-1">${id}</h3>`,
      schema.description ? `<p>${quoted(schema.description)}</p>` : "",
      fields(schema) || `<p>${kind(schema)}</p>`,
    );
  // The page passes through a template engine, which must find nothing of its own.
  return `{% raw %}${out.join("\n")}{% endraw %}`;
}
