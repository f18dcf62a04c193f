import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, errorText, type Machine } from "../../api";
import type { ConnectionRow } from "../../api-types";
import { now } from "../../clock";
import { duration } from "../../format";
import { useNow } from "../../hooks";
import { Copy } from "../../code";
import { Button, ErrorBox, Skeleton } from "../../ui";
import "./oauth.css";

// Flow is a sign-in at a provider: in another tab (the authorization code flow), or
// with a code that the user enters there (the device flow, RFC 8628).
export type Flow = "authorize" | "device";

// flowNames are the labels of the flows, for an account of a provider.
export const flowNames: Record<Flow, (provider: string) => string> = {
  authorize: (provider) => `Sign in with ${provider}`,
  device: () => "Use a device code",
};

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
  /** fields of the new connection, or {connectionId} to sign in to one again */
  body: Record<string, unknown>;
  onDone: (connectionId: string) => void;
  onCancel: () => void;
}

const pollMs = 2000; // between two checks whether the user has signed in

// SignInFlow runs a flow until the account is connected or the user cancels.
export function SignInFlow({ flow, ...props }: Props & { flow: Flow }) {
  const [attempt, setAttempt] = useState(0);
  const again = () => setAttempt(attempt + 1);
  return flow === "device" ? (
    <Device key={attempt} {...props} onAgain={again} />
  ) : (
    <Authorize key={attempt} {...props} onAgain={again} />
  );
}

// link returns an address if it is of the web; others are not opened.
function link(url: string): string | undefined {
  try {
    return /^https?:$/.test(new URL(url).protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

// usePoll calls poll until it returns the id of a connection, and returns the error
// if it fails. Otherwise poll returns the milliseconds to wait. A call without an
// answer is repeated: the user may be offline for a while.
function usePoll(
  of: unknown,
  first: number,
  poll: () => Promise<string | number>,
  onDone: (id: string) => void,
): string {
  const [error, setError] = useState("");
  useEffect(() => {
    if (!of) return;
    let timer = 0,
      over = false;
    const run = async () => {
      let wait = pollMs;
      try {
        const result = await poll();
        if (over) return;
        if (typeof result === "string") return onDone(result);
        wait = result;
      } catch (e) {
        if (over) return;
        if (!(e instanceof ApiError) || e.status !== 0) return setError(errorText(e));
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
  const ended = usePoll(
    shown,
    shown?.intervalMs ?? 0,
    async () => {
      const answer = await machine.post<Polling>(`${path}/poll`, {});
      return answer.connectionId ?? answer.waitMs ?? pollMs;
    },
    onDone,
  );
  const cancel = () => machine.post(`${path}/cancel`, {}).catch(() => {});
  if (failed || ended) {
    const other = failed instanceof ApiError && failed.code === "flow_under_way";
    return (
      <Failed text={ended || errorText(failed)} onCancel={onCancel}>
        <Button kind="main" onClick={() => void (other ? cancel() : Promise.resolve()).then(onAgain)}>
          {other ? "Cancel the other sign-in and start again" : "Start again"}
        </Button>
      </Failed>
    );
  }
  if (!shown) return <Skeleton what="code" rows={1} />;
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
      <Copy text={shown.userCode} label="Copy code" />
      <Waiting until={shown.expiresAt} for={`your confirmation at ${provider.name}`} />
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
  const rows = () => machine.list<ConnectionRow>(`/providers?provider=${encodeURIComponent(provider.id)}`);
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
  // The other tab ends at the gateway: there is a new connection, or the stored one
  // has new tokens.
  const ended = usePoll(
    begun,
    pollMs,
    async () => {
      if (begun!.expiresAt <= now()) throw new Error("The sign-in took too long. Start again.");
      const done = (await rows()).find((c) =>
        body.connectionId
          ? c.id === body.connectionId && c.tokenGeneration !== before.current.get(c.id)
          : !before.current.has(c.id),
      );
      return done?.id ?? pollMs;
    },
    onDone,
  );
  if (failed || ended)
    return (
      <Failed text={ended || errorText(failed)} onCancel={onCancel}>
        <Button kind="main" onClick={onAgain}>
          Start again
        </Button>
      </Failed>
    );
  if (!begun) return <Skeleton what="sign-in" rows={1} />;
  return (
    <div class="device">
      <p>Sign in at {provider.name} in a new tab. This page continues automatically.</p>
      <a class="button main" href={link(begun.url)} target="_blank" rel="noreferrer">
        Sign in with {provider.name}
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

// Waiting shows the time left.
function Waiting({ until, for: what }: { until: number; for: string }) {
  const at = useNow(true),
    from = useRef(at);
  const left = Math.max(0, until - at);
  return (
    <>
      <progress aria-label="Time left" max={until - from.current} value={left} />
      <p class="muted small">
        <span class="spinner" /> Waiting for {what}. {duration(left)} left.
      </p>
    </>
  );
}
