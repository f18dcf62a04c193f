// Unsaved input of forms. It survives navigation and the end of a session. It is
// stored only in memory, and discarded when the user signs out or another user
// signs in.
import { useCallback, useRef, useState } from "preact/hooks";

const drafts = new Map<string, unknown>();
let owner = "";

// setOwner discards the drafts of another user.
export function setOwner(who: string) {
  if (who !== owner) drafts.clear();
  owner = who;
}

export const discardDrafts = () => drafts.clear();

// unsaved reports whether there are drafts.
export const unsaved = () => drafts.size > 0;

if (typeof window !== "undefined")
  addEventListener("beforeunload", (e) => {
    if (unsaved()) e.preventDefault();
  });

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

export interface Draft {
  /** the value differs from the initial one */
  dirty: boolean;
  /** the form started with an earlier draft */
  restored: boolean;
  /** discards the draft and restores the initial value */
  clear: () => void;
}

// useDraft is useState for the form named key. stored returns the part of a value
// that is remembered: a form omits its secrets.
export function useDraft<T>(
  key: string,
  initial: T,
  stored: (value: T) => T = (v) => v,
): [value: T, set: (next: T | ((was: T) => T)) => void, draft: Draft] {
  const initialValue = useRef(initial),
    restored = useRef(drafts.has(key));
  const [value, put] = useState<T>(() => (drafts.has(key) ? (drafts.get(key) as T) : initial));
  const now = useRef(value);
  const set = useCallback(
    (next: T | ((was: T) => T)) => {
      const v = typeof next === "function" ? (next as (was: T) => T)(now.current) : next;
      now.current = v;
      if (same(stored(v), stored(initialValue.current))) drafts.delete(key);
      else drafts.set(key, stored(v));
      put(v);
    },
    [key],
  );
  const clear = useCallback(() => {
    drafts.delete(key);
    restored.current = false;
    now.current = initialValue.current;
    put(initialValue.current);
  }, [key]);
  return [value, set, { dirty: !same(value, initialValue.current), restored: restored.current, clear }];
}

const memory = new Map<string, unknown>();

// useMemoryState is useState for values that are remembered until the page is
// closed but never saved, such as a conversation. unsavedValue reports whether a
// value counts as unsaved input.
export function useMemoryState<T>(
  key: string,
  initial: T,
  unsavedValue: (value: T) => boolean = () => false,
): [value: T, set: (next: T) => void] {
  const [value, put] = useState<T>(() =>
    memory.has(key) && owner === memory.get(`owner ${key}`) ? (memory.get(key) as T) : initial,
  );
  const set = useCallback(
    (next: T) => {
      memory.set(key, next);
      memory.set(`owner ${key}`, owner);
      if (unsavedValue(next)) drafts.set(key, true);
      else drafts.delete(key);
      put(next);
    },
    [key],
  );
  return [value, set];
}
