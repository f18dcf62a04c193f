// The index of the sections of the pages, and what a reader's query finds in it.

// said are words of a question that say nothing of its subject.
const said = new Set("a an and are can do does for from how i in is it my of on or the to what when where why with".split(" "));

// maintainers is what those read who change weir: it comes after what users read.
const maintainers = /^(decisions\/|reference\/|architecture|development|releasing|extending|adding-a-provider)/;

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
// A misspelled word is found from six letters on: shorter ones are all alike.
export function find(index, query) {
  const all = query.toLowerCase().split(/[^\p{L}\p{N}_.-]+/u).filter(Boolean);
  const asked = all.filter((word) => !said.has(word));
  const terms = asked.length > 0 ? asked : all;
  const options = {
    boost: { title: 4, words: 4, page: 2 },
    boostDocument: (_id, _term, { url }) => (maintainers.test(url) ? 0.2 : 1),
    prefix: (term, i, list) => i === list.length - 1 && term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  };
  const found = index.search(terms.join(" "), { ...options, combineWith: "AND" });
  return found.some(({ url }) => !maintainers.test(url)) ? found : index.search(terms.join(" "), options);
}

// place returns where a word begins with a term in a text, in lower case, or -1.
function place(text, term) {
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + 1))
    if (!/[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) return at;
  return -1;
}

// excerpt returns the text around the first of the terms that were found.
export function excerpt(text, terms) {
  const lower = text.toLowerCase();
  const at = Math.min(...terms.map((term) => place(lower, term)).filter((i) => i >= 0), text.length);
  const start = at === text.length ? 0 : Math.max(0, at - 40);
  return (start > 0 ? "…" : "") + text.slice(start, start + 140);
}
