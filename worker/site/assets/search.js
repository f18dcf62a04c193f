// The index of the sections of the pages, and what a reader's query finds in it.

// said are words of a question that say nothing of its subject.
const said = new Set("a an and are can do does for from how i in is it my of on or the to what when where why with".split(" "));

// maintainers is what those read who change weir: it comes after what users read.
const maintainers = /^(decisions\/|reference\/(?!errors)|architecture|development|releasing|extending|adding-a-provider)/;

// errors is the page with a section for each code. They are short, so that each word weighs much: too
// much for the word of a subject, and rightly for the text of an error.
const errors = "reference/errors.html";

export function indexOf(MiniSearch, sections) {
  const index = new MiniSearch({
    fields: ["title", "page", "words", "text"],
    storeFields: ["url", "anchor", "page", "title", "text"],
  });
  index.addAll(sections);
  return index;
}

// find returns the sections that have all words of a query. If those who use weir read none of
// them, it returns the ones that have some.
// Only the last word may be the beginning of one, since it may not be typed to its end.
// A misspelled word is found from six letters on: shorter ones are all alike. The code of an error
// finds its section first. A name that an error has in quotes is no word of the documentation.
export function find(index, query) {
  const all = (query.replace(/"[^"]*"/g, "").trim() || query).toLowerCase().split(/[^\p{L}\p{N}_.-]+/u).filter(Boolean);
  const asked = all.filter((word) => !said.has(word));
  const terms = asked.length > 0 ? asked : all;
  const options = {
    boost: { title: 4, words: 4, page: 2 },
    boostDocument: (_id, _term, { url }) => (maintainers.test(url) ? 0.2 : url === errors ? (terms.length > 3 ? 2 : 0.6) : 1),
    prefix: (term, i, list) => i === list.length - 1 && term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  };
  const found = index.search(terms.join(" "), { ...options, combineWith: "AND" });
  const best = found.some(({ url }) => !maintainers.test(url)) ? found : index.search(terms.join(" "), options);
  const code = query.includes("_") ? best.findIndex(({ anchor }) => anchor === query.trim()) : -1;
  return code > 0 ? [best[code], ...best.toSpliced(code, 1)] : best;
}

// excerpt returns the sentence of a text that has most of the terms that were found, in pieces:
// every second one is such a term. A line of a text is a paragraph, a row of a table or a command.
export function excerpt(text, terms) {
  if (terms.length === 0) return [text.slice(0, 160)];
  const words = terms.map((term) => term.replace(/[$+^|]/g, "\\$&")).join("|");
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${words})`, "giu");
  const variety = (sentence) => new Set(sentence.toLowerCase().match(pattern)).size;
  const sentences = text.split(/\n|(?<=[.!?]) (?=\p{Lu})/u);
  const counts = sentences.map(variety);
  const best = counts.indexOf(Math.max(...counts));
  // A short sentence is shown with those after it.
  const from = sentences.slice(best).join(" ");
  const at = from.search(pattern);
  const start = at > 100 ? from.lastIndexOf(" ", at - 50) + 1 : 0;
  const shown = from.slice(start, start + 160);
  return `${start > 0 ? "…" : ""}${shown}`.split(pattern);
}
