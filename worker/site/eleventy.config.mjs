// Builds the documentation, docs/, as static pages in build/dashboard/docs. The pages
// have no inline script or style, so the dashboard's Content-Security-Policy holds for
// them, and all links are relative, so the folder can be published under any address.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import highlight from "@11ty/eleventy-plugin-syntaxhighlight";
import anchor from "markdown-it-anchor";
import { operations } from "./api.mjs";
import { navigation } from "./navigation.mjs";
import { words } from "./words.mjs";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

// slug is the id of a heading, as GitHub writes it, so that links work there too.
const slug = (text) =>
  text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");

// urlOf returns the path of the page of a file of docs/: guides/codex.md → guides/codex.
const urlOf = (file) => file.replace(/\.md$/, "").replace(/(^|\/)(README|index)$/, "$1");

// wrong is the page for a wrong address, which is shown at any address below /docs.
const wrong = "404.md";

// from writes a path of the site relative to the page of a file.
const from = (file, path) => {
  if (file === wrong) return `/docs/${path}`;
  const folder = posix.dirname(urlOf(file).endsWith("/") || urlOf(file) === "" ? `${urlOf(file)}x` : urlOf(file));
  const out = posix.relative(folder, path.replace(/\/$/, "") || ".");
  return (out === "" ? "." : out) + (path.endsWith("/") || path === "" ? "/" : "");
};

// links makes links between files of docs/ links between pages. A link out of docs/
// becomes its text: the pages are published without the repository.
function links(md) {
  md.core.ruler.push("links", (state) => {
    const file = state.env.page.inputPath.replace(/^.*?docs\//, "");
    const tokens = (list) => list.flatMap((t) => (t.children ? [t, ...tokens(t.children)] : [t]));
    let dropped = 0;
    for (const t of tokens(state.tokens)) {
      if (t.type === "link_open") {
        const href = t.attrGet("href");
        if (/^[a-z]+:|^#/.test(href)) continue;
        const [path, fragment] = href.split("#");
        const target = posix.join(posix.dirname(file), path);
        if (target === "../README.md") t.attrSet("href", from(file, ""));
        else if (target === "reference/openapi.json") t.attrSet("href", "/openapi.json");
        else if (target.startsWith("..")) {
          t.tag = "span";
          t.attrs = [];
          dropped++;
        } else t.attrSet("href", from(file, urlOf(target)) + (fragment ? `#${fragment}` : ""));
      } else if (t.type === "link_close" && dropped > 0) {
        t.tag = "span";
        dropped--;
      } else if (t.type === "image") {
        const src = t.attrGet("src");
        if (!/^[a-z]+:/.test(src)) t.attrSet("src", from(file, posix.join(posix.dirname(file), src)));
      }
    }
  });
}

// codes sets the code of each row of the error table as its id.
function codes(md) {
  md.core.ruler.push("codes", (state) => {
    if (!state.env.page.inputPath.endsWith("reference/errors.md")) return;
    state.tokens.forEach((t, i) => {
      const cell = state.tokens[i + 2];
      if (t.type !== "tr_open" || state.tokens[i + 1]?.type !== "td_open") return;
      const code = cell?.children?.find((c) => c.type === "code_inline");
      if (code) t.attrSet("id", code.content);
    });
  });
}

// tables lets a wide table scroll by itself. A cell without text is no header.
function tables(md) {
  md.core.ruler.push("cells", (state) => {
    state.tokens.forEach((t, i) => {
      if (t.type !== "th_open" || state.tokens[i + 1].content !== "") return;
      t.tag = "td";
      state.tokens[i + 2].tag = "td";
    });
  });
  md.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>';
  md.renderer.rules.table_close = () => "</table></div>";
}

// plain returns the text of HTML.
const plain = (html) =>
  html
    .replace(/<\/?(?:a|code|em|strong|span)\b[^>]*>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();

// order is that of the pages of the menu.
const order = navigation.flatMap((group) => group.pages);

// whole are the pages that are searched whole; of others, for maintainers, the search has the headings and what
// follows on them first.
const whole = new RegExp(`^(providers/.*|${order.join("|")})$`);

// lines returns the text of HTML with a line for each paragraph, row of a table and line of code.
const lines = (html) =>
  html
    .replace(/<pre[\s\S]*?<\/pre>/g, (code) => code.replace(/\n/g, "</p>"))
    .replace(/<\/t[dh]>\s*(?=<t)/g, " · ")
    .split(/<\/(?:p|li|tr|pre|h\d)>/)
    .map(plain)
    .filter(Boolean)
    .join("\n");

// sections returns the sections of a page for the search: each heading with its text, and each row
// of the table of errors, by its code.
function sections(url, html) {
  const main = html.slice(html.indexOf('<main id="main">'), html.search(/<nav class="turn"|<footer>/));
  const head = /^<(?:h[123]|tr) id="([^"]*)"[^>]*>([\s\S]*?)<\/(?:h[123]|td)>/;
  const parts = main.split(/(?=<(?:h[123]|tr) id=)/).filter((part) => head.test(part));
  const titles = parts.map((part) => plain(head.exec(part)[2]));
  return parts.map((part, i) => {
    const [heading, anchor] = head.exec(part);
    const path = url.replace(/(^|\/)index\.html$|\.html$/, "$1");
    const more = words[i === 0 ? path : `${path}#${anchor}`];
    const text = lines(part.slice(heading.length)).slice(0, whole.test(path) ? undefined : 200);
    return { url, anchor, page: titles[0], title: titles[i], text, words: more };
  });
}

// contents returns the headings of a page below its title, with more than one only.
function contents(html) {
  const list = [...html.matchAll(/<h([23]) id="([^"]*)"[^>]*>([\s\S]*?)<\/h\1>/g)].map(([, level, id, text]) => ({
    level,
    id,
    text: plain(text),
  }));
  return list.length > 1 && list.length < 60 ? list : [];
}

// llms returns llms.txt (https://llmstxt.org): the pages with their first sentence.
function llms(index) {
  const first = (text) => /^.*?\.(?= |$)/.exec(text.replace(/\n/g, " "))?.[0] ?? text.slice(0, 200);
  const of = (path) => index.find((s) => s.url.replace(/index\.html$|\.html$/, "") === path);
  const lines = ["# weir", "", `> ${first(of("").text)}`, ""];
  for (const group of navigation) {
    lines.push(`## ${group.title}`, "");
    for (const path of group.pages) {
      const page = of(path);
      lines.push(`- [${page.page}](/docs/${path}): ${first(page.text)}`);
    }
    lines.push("");
  }
  return lines.join("\n");
}

export default function (config) {
  config.addPlugin(highlight);
  config.setQuietMode(true);
  config.setUseGitIgnore(false);
  config.amendLibrary("md", (md) => {
    md.set({ html: false });
    md.use(anchor, { slugify: slug, tabIndex: false });
    md.use(links);
    md.use(codes);
    md.use(tables);
  });
  // The README's own pictures are as large as everything else here.
  config.addPassthroughCopy("docs/images/!(tour|overview|overview-dark).png");
  config.addPassthroughCopy("docs/**/*.{svg,schema.json}");
  config.addPassthroughCopy({ [here("assets")]: "assets" });
  config.addPassthroughCopy({ "node_modules/minisearch/dist/es/index.js": "assets/minisearch.js" });

  const repository = process.env.REPOSITORY ?? "";
  config.addPreprocessor("texts", "md", (_data, text) =>
    repository
      ? text
          .replace(/^<!--.*-->$/gm, "")
          .replaceAll("https://github.com/OWNER/weir", repository)
          .replace("`OWNER` is the account that the repository is under. ", "")
      : text.replace(/^<!--.*-->$/gm, ""),
  );
  // A block of code that is wider than the screen is scrolled by the keyboard too.
  config.addTransform("focus", (html) => html.replace(/<pre(?=[ >])/g, '<pre tabindex="0"'));

  const titles = new Map();
  const title = (text) => /^# (.+)$/m.exec(text)?.[1].replace(/`/g, "") ?? "weir";
  for (const path of navigation.flatMap((group) => group.pages)) {
    const file = [`docs/${path}.md`, `docs/${path}README.md`].find(existsSync);
    titles.set(path, path === "" ? "Overview" : path === "reference/api" ? "API" : title(readFileSync(file, "utf8")));
  }
  config.addGlobalData("layout", "layout.njk");
  config.addGlobalData("navigation", navigation);
  config.addGlobalData("eleventyComputed", {
    title: (data) => data.title || title(readFileSync(data.page.inputPath, "utf8")),
    permalink: (data) =>
      data.permalink || `${urlOf(data.page.inputPath.replace(/^.*?docs\//, "")).replace(/(^|\/)$/, "$1index")}.html`,
    file: (data) => data.file || data.page.inputPath.replace(/^.*?docs\//, ""),
  });
  config.addFilter("from", (path, file) => from(file, path));
  config.addFilter("titleOf", (path) => titles.get(path));
  config.addFilter("pathOf", urlOf);
  config.addFilter("contents", contents);
  config.addFilter("after", (file, step) => {
    const at = order.indexOf(urlOf(file));
    return at < 0 ? undefined : order[at + step];
  });
  const openapi = JSON.parse(readFileSync("docs/reference/openapi.json", "utf8"));
  config.addTemplate("reference/api.njk", operations(openapi), {
    title: "API",
    file: "reference/api.md",
    permalink: "reference/api.html",
  });
  config.addTemplate(
    "404.md",
    "# Page not found\n\nNo page has this address. It may have moved: search for it above.\n",
    {
      title: "Page not found",
      file: wrong,
      permalink: "404.html",
    },
  );
  // The footer has the version, and where the sources are if that is known.
  config.addGlobalData("version", process.env.WEIR_VERSION ?? "");
  config.addGlobalData("repository", repository);
  config.on("eleventy.after", ({ directories, results }) => {
    const index = results
      .filter((r) => r.outputPath.endsWith(".html") && !r.outputPath.endsWith("/404.html"))
      .sort((a, b) => (a.url < b.url ? -1 : 1))
      .flatMap((r) => sections(r.outputPath.slice(directories.output.length), r.content))
      .map((section, id) => ({ id, ...section }));
    writeFileSync(`${directories.output}search.json`, JSON.stringify(index));
    writeFileSync(`${directories.output}../llms.txt`, llms(index));
    writeFileSync(`${directories.output}../openapi.json`, JSON.stringify(openapi));
  });
  return {
    markdownTemplateEngine: false,
    dir: { input: "docs", output: "build/dashboard/docs", includes: "../worker/site", data: "../worker/site/data" },
  };
}
