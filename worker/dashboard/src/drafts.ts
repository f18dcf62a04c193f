// What somebody has typed and not saved yet. It survives leaving the page, going
// back and a session that ends; it is in this page's memory alone, and gone with
// an explicit sign-out or another person's sign-in.
import { useCallback, useRef, useState } from "preact/hooks";

const drafts = new Map<string, unknown>();
let owner = "";

// belongTo drops the drafts of somebody else.
export function belongTo(who: string) {
  if (who !== owner) drafts.clear();
  owner = who;
}

export const discardDrafts = () => drafts.clear();

// unsaved reports whether there is anything to lose.
export const unsaved = () => drafts.size > 0;

if (typeof window !== "undefined") addEventListener("beforeunload", (e) => { if (unsaved()) e.preventDefault(); });

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

export interface Draft {
  /** something differs from what the form began with */
  dirty: boolean;
  /** the form began with a draft of before */
  restored: boolean;
  /** forgets the draft, and shows what the form begins with */
  clear: () => void;
}

// useDraft is useState for a form that is named by key. kept makes what is
// remembered of a value: a form leaves its secrets out.
export function useDraft<T>(key: string, initial: T, kept: (value: T) => T = (v) => v): [value: T, set: (next: T | ((was: T) => T)) => void, draft: Draft] {
  const began = useRef(initial), restored = useRef(drafts.has(key));
  const [value, put] = useState<T>(() => drafts.has(key) ? drafts.get(key) as T : initial);
  const now = useRef(value);
  const set = useCallback((next: T | ((was: T) => T)) => {
    const v = typeof next === "function" ? (next as (was: T) => T)(now.current) : next;
    now.current = v;
    if (same(kept(v), kept(began.current))) drafts.delete(key); else drafts.set(key, kept(v));
    put(v);
  }, [key]);
  const clear = useCallback(() => {
    drafts.delete(key);
    restored.current = false;
    now.current = began.current;
    put(began.current);
  }, [key]);
  return [value, set, { dirty: !same(value, began.current), restored: restored.current, clear }];
}

const memory = new Map<string, unknown>();

// useKept is useState for what is remembered as long as this page is open, but
// is nothing that is saved: a conversation. It counts as unsaved where loses
// says so.
export function useKept<T>(key: string, initial: T, loses: (value: T) => boolean = () => false): [value: T, set: (next: T) => void] {
  const [value, put] = useState<T>(() => memory.has(key) && owner === memory.get("owner " + key) ? memory.get(key) as T : initial);
  const set = useCallback((next: T) => {
    memory.set(key, next);
    memory.set("owner " + key, owner);
    if (loses(next)) drafts.set(key, true); else drafts.delete(key);
    put(next);
  }, [key]);
  return [value, set];
}
