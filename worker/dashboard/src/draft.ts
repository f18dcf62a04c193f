// The unsaved input of one form, and other state that outlives a page.
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { drafts, memory } from "./drafts";

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
// that is remembered: a form omits its secrets. The key of a form of a record has its generation:
// another one is what someone else has saved, and the fields that were typed here are kept.
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
  const last = useRef(key);
  useLayoutEffect(() => {
    if (last.current === key) return;
    drafts.delete(last.current);
    last.current = key;
    const was = initialValue.current;
    const typed = Object.entries(now.current as object).filter(([name, v]) => !same(v, was[name as keyof T]));
    initialValue.current = initial;
    set({ ...(initial as object), ...Object.fromEntries(typed) } as T);
  }, [key]);
  const clear = useCallback(() => {
    drafts.delete(key);
    restored.current = false;
    now.current = initialValue.current;
    put(initialValue.current);
  }, [key]);
  return [value, set, { dirty: !same(value, initialValue.current), restored: restored.current, clear }];
}

// MemoryStore holds a value until the page is closed: it outlives the components
// that show it, and code that runs in the background may change it.
export class MemoryStore<T> {
  private listeners = new Set<() => void>();
  constructor(
    private key: string,
    private value: T,
    private unsavedValue: (value: T) => boolean,
  ) {}
  get = () => this.value;
  set = (next: T) => {
    this.value = next;
    if (!this.discarded) {
      if (this.unsavedValue(next)) drafts.set(this.key, true);
      else drafts.delete(this.key);
    }
    for (const changed of this.listeners) changed();
  };
  // discarded reports whether its user has signed out.
  get discarded() {
    return memory.get(this.key) !== this;
  }
  subscribe = (changed: () => void) => {
    this.listeners.add(changed);
    return () => void this.listeners.delete(changed);
  };
}

// memoryStore returns the store named key, which starts with initial. unsavedValue
// reports whether a value counts as unsaved input.
export function memoryStore<T>(
  key: string,
  initial: T,
  unsavedValue: (value: T) => boolean = () => false,
): MemoryStore<T> {
  let store = memory.get(key) as MemoryStore<T> | undefined;
  if (!store) {
    store = new MemoryStore(key, initial, unsavedValue);
    memory.set(key, store as MemoryStore<unknown>);
  }
  return store;
}

// useStore returns the value of a store and follows its changes.
export function useStore<T>(store: MemoryStore<T>): T {
  const [, draw] = useState({});
  useLayoutEffect(() => store.subscribe(() => draw({})), [store]);
  return store.get();
}

// useMemoryState is useState for values that are remembered until the page is
// closed but never saved, such as a conversation.
export function useMemoryState<T>(
  key: string,
  initial: T,
  unsavedValue?: (value: T) => boolean,
): [value: T, set: (next: T) => void] {
  const store = memoryStore(key, initial, unsavedValue);
  return [useStore(store), store.set];
}
