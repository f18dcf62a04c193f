// Markdown shows a model's text as formatted text. markdown-it splits it into tokens,
// and these become elements: no text is parsed as HTML, which the page's policy
// forbids. See docs/architecture.md.
import MarkdownIt, { type Token } from "markdown-it";
import { type ComponentChildren, h } from "preact";
import { useMemo } from "preact/hooks";
import { Copy } from "../../code";

// Longer texts are shown as they are: some texts take markdown-it quadratic time.
const maxText = 200_000;

// Elements of the text, by the tags of markdown-it. Headings are handled apart.
const tags = ["p", "ul", "ol", "li", "blockquote", "em", "strong", "s", "thead", "tbody", "tr", "th", "td"];

const parser = new MarkdownIt({ html: false, linkify: true });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.validateLink = (url) => isLink(url) || isPicture(url);
const isLink = (url: string) => /^(https?:|mailto:)/i.test(url);
const isPicture = (url: string) => /^data:image\/(png|jpeg|webp|gif);base64,/i.test(url);

export function Markdown({ text }: { text: string }) {
  const parts = useMemo(() => (text.length > maxText ? null : elements(parser.parse(text, {}))), [text]);
  return parts ? (
    <div class="md" dir="auto">
      {parts}
    </div>
  ) : (
    <p class="said" dir="auto">
      {text}
    </p>
  );
}

interface Open {
  wrap: (children: ComponentChildren[]) => ComponentChildren;
  children: ComponentChildren[];
}

// elements returns the elements of a list of tokens, in which an opening token and its
// closing one enclose the tokens of an element's content.
function elements(tokens: Token[]): ComponentChildren[] {
  const root: ComponentChildren[] = [];
  const stack: Open[] = [{ wrap: (c) => c, children: root }];
  let level = 2; // of the heading before: none is skipped, so that the outline is valid
  for (const t of tokens) {
    if (t.hidden) continue; // the paragraphs of a tight list
    if (t.nesting === 1) {
      if (/^h[1-6]$/.test(t.tag)) level = Math.min(Number(t.tag[1]) + 2, level + 1, 6);
      stack.push({ wrap: element(t, level), children: [] });
    } else if (t.nesting === -1) {
      const { wrap, children } = stack.pop()!;
      stack.at(-1)!.children.push(wrap(children));
    } else stack.at(-1)!.children.push(leaf(t));
  }
  return root;
}

const attribute = (t: Token, name: string) => String(t.attrGet(name) ?? "");

// element returns the function that makes the element of an opening token.
function element(t: Token, level: number): Open["wrap"] {
  const { tag } = t;
  if (/^h[1-6]$/.test(tag)) return (c) => h(`h${level}`, {}, ...c);
  if (tag === "a") {
    const href = attribute(t, "href");
    if (!isLink(href)) return (c) => <span>{c}</span>;
    return (c) => (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {c}
      </a>
    );
  }
  if (tag === "table")
    return (c) => (
      <div class="scroll" tabIndex={0} role="group" aria-label="Table">
        <table>{c}</table>
      </div>
    );
  if (!tags.includes(tag)) return (c) => <>{c}</>;
  const props: Record<string, unknown> = {};
  if (tag === "ol") props.start = attribute(t, "start") || undefined;
  if (tag === "th") props.scope = "col";
  if (attribute(t, "style").includes("right")) props.class = "num";
  return (c) => h(tag, props, ...c);
}

function leaf(t: Token): ComponentChildren {
  switch (t.type) {
    case "inline":
      return elements(t.children ?? []);
    case "code_inline":
      return <code>{t.content}</code>;
    case "fence":
    case "code_block":
      return <CodeBlock text={t.content.replace(/\n$/, "")} language={t.info.trim().split(/\s/)[0]} />;
    case "hardbreak":
    case "softbreak":
      return <br />;
    case "hr":
      return <hr />;
    case "image":
      return <Picture src={attribute(t, "src")} alt={t.content} />;
  }
  return t.content;
}

// Picture shows a picture that is part of the text. One at an address is a link: to
// load it would tell its server that, and with what address, it was shown.
function Picture({ src, alt }: { src: string; alt: string }) {
  if (isPicture(src)) return <img class="made" src={src} alt={alt} />;
  return (
    <a href={src} target="_blank" rel="noopener noreferrer">
      Image: {alt || src}
    </a>
  );
}

export function CodeBlock({ text, language }: { text: string; language?: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} role="group" aria-label={language ? `Code, ${language}` : "Code"}>
        <code>{text}</code>
      </pre>
      <Copy text={text} />
    </div>
  );
}
