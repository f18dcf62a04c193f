// Unsaved input of forms. It survives navigation and the end of a session. It is
// stored only in memory, and discarded when the user signs out or another user
// signs in. The forms use draft.ts, which the sign-in page does not load.

// drafts are the values of useDraft, by the names of their forms, and the stores with unsaved input.
export const drafts = new Map<string, unknown>();

// memory are the stores of useMemoryState, by their names.
export const memory = new Map<string, unknown>();

let owner = "";

// setOwner discards the drafts of another user.
export function setOwner(who: string) {
  if (who !== owner) discardDrafts();
  owner = who;
}

export function discardDrafts() {
  drafts.clear();
  memory.clear();
}

// unsaved reports whether there are drafts.
export const unsaved = () => drafts.size > 0;

if (typeof window !== "undefined")
  addEventListener("beforeunload", (e) => {
    if (unsaved()) e.preventDefault();
  });
