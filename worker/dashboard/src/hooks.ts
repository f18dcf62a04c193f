import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, words } from "./api";

export interface Loaded<T> {
  data: T | null;
  /** in words, "" without one; data of before may still be there */
  error: string;
  loading: boolean;
  reload: () => Promise<void>;
  set: (data: T) => void;
}

// useLoad runs a call whenever deps change, and again by reload. The answer of
// an older call is dropped.
export function useLoad<T>(load: () => Promise<T>, deps: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; error: string; loading: boolean }>({
    data: null,
    error: "",
    loading: true,
  });
  const turn = useRef(0);
  const run = useCallback(async () => {
    const mine = ++turn.current;
    setState((s) => ({ ...s, loading: true, error: "" }));
    try {
      const data = await load();
      if (mine === turn.current) setState({ data, error: "", loading: false });
    } catch (e) {
      if (mine === turn.current) setState((s) => ({ ...s, error: words(e), loading: false }));
    }
  }, deps);
  const set = useCallback((data: T) => {
    turn.current++;
    setState({ data, error: "", loading: false });
  }, []);
  useEffect(() => {
    void run();
    return () => {
      turn.current++;
    };
  }, [run]);
  return { ...state, reload: run, set };
}

export interface Action {
  busy: boolean;
  error: string;
  /** somebody else has changed what this was about */
  stale: boolean;
  /** tells whether it went well */
  run: (f: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
}

const calm = { busy: false, error: "", stale: false };

// useAction runs something that a person asked for: busy while it runs, its
// failure in words.
export function useAction(): Action {
  const [state, set] = useState(calm);
  const run = useCallback(async (f: () => Promise<unknown>) => {
    set({ ...calm, busy: true });
    try {
      await f();
      set(calm);
      return true;
    } catch (e) {
      set({ busy: false, error: words(e), stale: e instanceof ApiError && e.status === 412 });
      return false;
    }
  }, []);
  const clear = useCallback(() => set(calm), []);
  return { ...state, run, clear };
}

// useIdle tells whether nobody has touched the page for a while. What refreshes
// itself stops then: it would keep a session alive that nobody uses.
export function useIdle(afterMs: number): boolean {
  const [idle, set] = useState(false);
  useEffect(() => {
    let timer = 0;
    const touched = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => set(true), afterMs);
      set(false);
    };
    const kinds = ["pointerdown", "pointermove", "keydown", "wheel", "focus"];
    for (const kind of kinds) addEventListener(kind, touched, { passive: true });
    touched();
    return () => {
      clearTimeout(timer);
      for (const kind of kinds) removeEventListener(kind, touched);
    };
  }, [afterMs]);
  return idle;
}

// useNow gives the time, anew every second while active.
export function useNow(active: boolean): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    if (!active) return;
    set(Date.now());
    const timer = setInterval(() => set(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

// useSettled returns a value once it has not changed for ms, for example the text
// of a search field after a pause in typing.
export function useSettled<T>(value: T, ms: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    if (value === settled) return;
    const timer = setTimeout(() => set(value), ms);
    return () => clearTimeout(timer);
  }, [value, settled, ms]);
  return settled;
}
