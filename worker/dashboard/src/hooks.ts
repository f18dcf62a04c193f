import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, errorText } from "./api";
import { now } from "./clock";

export interface Loaded<T> {
  data: T | null;
  /** as text, "" without an error; the previous data may still be set */
  error: string;
  loading: boolean;
  reload: () => Promise<void>;
  set: (data: T) => void;
}

// useLoad makes a call whenever deps change and when reload is called. The answer
// of an older call is ignored.
export function useLoad<T>(load: () => Promise<T>, deps: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; error: string; loading: boolean }>({
    data: null,
    error: "",
    loading: true,
  });
  const latest = useRef(0); // number of the latest call
  const run = useCallback(async () => {
    const mine = ++latest.current;
    setState((s) => ({ ...s, loading: true, error: "" }));
    try {
      const data = await load();
      if (mine === latest.current) setState({ data, error: "", loading: false });
    } catch (e) {
      if (mine === latest.current) setState((s) => ({ ...s, error: errorText(e), loading: false }));
    }
  }, deps);
  const set = useCallback((data: T) => {
    latest.current++;
    setState({ data, error: "", loading: false });
  }, []);
  useEffect(() => {
    void run();
    return () => {
      latest.current++;
    };
  }, [run]);
  return { ...state, reload: run, set };
}

export interface Action {
  busy: boolean;
  error: string;
  /** the record was changed by someone else in the meantime (412) */
  stale: boolean;
  /** runs f and reports whether it succeeded */
  run: (f: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
}

const idleAction = { busy: false, error: "", stale: false };

// useAction runs an action of the user and holds its state and its error.
export function useAction(): Action {
  const [state, set] = useState(idleAction);
  const run = useCallback(async (f: () => Promise<unknown>) => {
    set({ ...idleAction, busy: true });
    try {
      await f();
      set(idleAction);
      return true;
    } catch (e) {
      set({ busy: false, error: errorText(e), stale: e instanceof ApiError && e.status === 412 });
      return false;
    }
  }, []);
  const clear = useCallback(() => set(idleAction), []);
  return { ...state, run, clear };
}

const idleMs = 10 * 60_000; // without input, after which pages stop refreshing

// useIdle reports whether the user has not touched the page for a while. Pages
// that refresh themselves pause then, because each call extends the session.
export function useIdle(): boolean {
  const [idle, set] = useState(false);
  useEffect(() => {
    let timer = 0;
    const touched = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => set(true), idleMs);
      set(false);
    };
    const kinds = ["pointerdown", "pointermove", "keydown", "wheel", "focus"];
    for (const kind of kinds) addEventListener(kind, touched, { passive: true });
    touched();
    return () => {
      clearTimeout(timer);
      for (const kind of kinds) removeEventListener(kind, touched);
    };
  }, []);
  return idle;
}

export const refreshMs = 30_000; // of pages that show the state of now

// useRefresh calls reload at an interval, which is off if everyMs is 0. It pauses while the
// page is hidden or the user is idle.
export function useRefresh(reload: () => Promise<void>, everyMs: number) {
  const idle = useIdle();
  useEffect(() => {
    if (idle || !everyMs) return;
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [reload, everyMs, idle]);
}

// useNow returns the current time, updated every second while active.
export function useNow(active: boolean): number {
  const [at, set] = useState(now);
  useEffect(() => {
    if (!active) return;
    set(now());
    const timer = setInterval(() => set(now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return at;
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
