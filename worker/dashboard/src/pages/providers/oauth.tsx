import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, duration, words, type Machine } from "../../api";
import { useNow } from "../../hooks";
import { Button, Copy, ErrorBox, Skeleton } from "../../ui";
import type { ConnectionRow } from "../../connections";

// How an account is connected by its provider's own sign-in: in another tab,
// or by a code that is entered there. ProviderRow.connect lists what there is.
export type Flow = "authorize" | "device";

export const flowNames: Record<Flow, string> = { authorize: "Sign in there", device: "Use a code" };

interface Authorizing {
  url: string;
  expiresAt: number;
}
interface Showing {
  userCode: string;
  verificationUri: string;
  verificationUriComplete?: string;
  intervalMs: number;
  expiresAt: number;
}
interface Polling {
  status: string;
  waitMs?: number;
  connectionId?: string;
}

interface Props {
  machine: Machine;
  provider: { id: string; name: string };
  /** of the new connection; or {connectionId} of one to be signed in to again */
  body: Record<string, unknown>;
  onDone: (connectionId: string) => void;
  onCancel: () => void;
}

const lookAgain = 2000; // ms between looks whether the other tab is done

// SignInFlow runs one flow to its end.
export function SignInFlow({ flow, ...props }: Props & { flow: Flow }) {
  const [turn, setTurn] = useState(0);
  const again = () => setTurn(turn + 1);
  return flow === "device" ? (
    <Device key={turn} {...props} onAgain={again} />
  ) : (
    <Authorize key={turn} {...props} onAgain={again} />
  );
}

// link lets only addresses of the web be opened.
function link(url: string): string | undefined {
  try {
    return /^https?:$/.test(new URL(url).protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

// useEnd calls look until it gives a connection, and tells what went wrong.
// look gives how long to wait otherwise; being offline for a while ends nothing.
function useEnd(
  of: unknown,
  first: number,
  look: () => Promise<string | number>,
  onDone: (id: string) => void,
): string {
  const [error, setError] = useState("");
  useEffect(() => {
    if (!of) return;
    let timer = 0,
      over = false;
    const run = async () => {
      let wait = lookAgain;
      try {
        const got = await look();
        if (over) return;
        if (typeof got === "string") return onDone(got);
        wait = got;
      } catch (e) {
        if (over) return;
        if (!(e instanceof ApiError) || e.status !== 0) return setError(words(e));
      }
      timer = setTimeout(() => void run(), Math.max(wait, 200));
    };
    timer = setTimeout(() => void run(), first);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [of]);
  return error;
}

function Device({ machine, provider, body, onDone, onCancel, onAgain }: Props & { onAgain: () => void }) {
  const path = `/oauth/${encodeURIComponent(provider.id)}`;
  const [shown, setShown] = useState<Showing | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  useEffect(() => {
    machine.post<Showing>(`${path}/device`, body).then(setShown, setFailed);
  }, []);
  const ended = useEnd(
    shown,
    shown?.intervalMs ?? 0,
    async () => {
      const got = await machine.post<Polling>(`${path}/poll`, {});
      return got.connectionId ?? got.waitMs ?? lookAgain;
    },
    onDone,
  );
  const cancel = () => machine.post(`${path}/cancel`, {}).catch(() => {});
  if (failed || ended) {
    const other = failed instanceof ApiError && failed.code === "flow_under_way";
    return (
      <Failed text={ended || words(failed)} onCancel={onCancel}>
        <Button kind="main" onClick={() => void (other ? cancel() : Promise.resolve()).then(onAgain)}>
          {other ? "Give that up and begin again" : "Begin again"}
        </Button>
      </Failed>
    );
  }
  if (!shown) return <Skeleton what="the code" rows={1} />;
  const address = link(shown.verificationUriComplete ?? "") ?? link(shown.verificationUri);
  return (
    <div class="device">
      <p>
        Enter this code at{" "}
        <a href={address} target="_blank" rel="noreferrer">
          {shown.verificationUri}
        </a>
      </p>
      <p class="usercode" role="status">
        {shown.userCode}
      </p>
      <Copy text={shown.userCode} label="Copy the code" />
      <Waiting until={shown.expiresAt} for={`you to confirm at ${provider.name}`} />
      <Button kind="quiet" onClick={() => void cancel().then(onCancel)}>
        Cancel
      </Button>
    </div>
  );
}

function Authorize({ machine, provider, body, onDone, onCancel, onAgain }: Props & { onAgain: () => void }) {
  const [begun, setBegun] = useState<Authorizing | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const before = useRef(new Map<string, number>());
  const rows = async () =>
    (await machine.get<{ data: ConnectionRow[] }>(`/providers?provider=${encodeURIComponent(provider.id)}`)).data;
  useEffect(() => {
    void (async () => {
      try {
        before.current = new Map((await rows()).map((c) => [c.id, c.tokenGeneration]));
        setBegun(await machine.post<Authorizing>(`/oauth/${encodeURIComponent(provider.id)}/authorize`, body));
      } catch (e) {
        setFailed(e);
      }
    })();
  }, []);
  // The other tab ends at the gateway: a connection is new, or the one has new tokens.
  const ended = useEnd(
    begun,
    lookAgain,
    async () => {
      if (begun!.expiresAt <= Date.now()) throw new Error("The sign-in took too long. Begin again.");
      const done = (await rows()).find((c) =>
        body.connectionId
          ? c.id === body.connectionId && c.tokenGeneration !== before.current.get(c.id)
          : !before.current.has(c.id),
      );
      return done?.id ?? lookAgain;
    },
    onDone,
  );
  if (failed || ended)
    return (
      <Failed text={ended || words(failed)} onCancel={onCancel}>
        <Button kind="main" onClick={onAgain}>
          Begin again
        </Button>
      </Failed>
    );
  if (!begun) return <Skeleton what="the address to sign in at" rows={1} />;
  return (
    <div class="device">
      <p>Sign in at {provider.name} in another tab. This page goes on when you are done.</p>
      <a class="button main" href={link(begun.url)} target="_blank" rel="noreferrer">
        Go to {provider.name}
      </a>
      <Waiting until={begun.expiresAt} for={`the sign-in at ${provider.name}`} />
      <Button kind="quiet" onClick={onCancel}>
        Cancel
      </Button>
    </div>
  );
}

function Failed({ text, onCancel, children }: { text: string; onCancel: () => void; children: ComponentChildren }) {
  return (
    <div class="stack">
      <ErrorBox>{text}</ErrorBox>
      <div class="row wrap">
        {children}
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </div>
  );
}

// Waiting shows how much time is left.
function Waiting({ until, for: what }: { until: number; for: string }) {
  const now = useNow(true),
    from = useRef(Date.now());
  const left = Math.max(0, until - now);
  return (
    <>
      <progress aria-label="Time left" max={until - from.current} value={left} />
      <p class="muted small">
        <span class="spinner" /> Waiting for {what}; {duration(left)} left.
      </p>
    </>
  );
}
