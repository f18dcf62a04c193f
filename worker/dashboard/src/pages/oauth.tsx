import { useEffect, useRef, useState } from "preact/hooks";
import { duration, words, type Machine } from "../api";
import type { Has } from "../app";
import { useAction, useNow } from "../hooks";
import { Button, Copy, ErrorBox } from "../ui";
import type { ProviderRow } from "./connections";

const device = "POST /api/oauth/{provider}/device", authorize = "POST /api/oauth/{provider}/authorize";

export const oauthServed = (has: Has) => has(device) || has(authorize);

interface DeviceAnswer { userCode: string; verificationUri: string; verificationUriComplete?: string; intervalMs?: number; expiresAt?: number }
interface PollAnswer { connectionId?: string; connection?: { id: string }; waitMs?: number; status?: string }

// link lets only addresses of the web be opened.
function link(url: string): string | undefined {
  try { return /^https?:$/.test(new URL(url).protocol) ? url : undefined; } catch { return undefined; }
}

// OAuth connects an account by the provider's own sign-in.
export function OAuth({ machine, has, provider, onDone }: { machine: Machine; has: Has; provider: ProviderRow; onDone: () => void }) {
  const [flow, setFlow] = useState<DeviceAnswer | null>(null);
  const [error, setError] = useState("");
  const start = useAction();
  const began = useRef(0);
  const now = useNow(!!flow);
  const base = `/oauth/${encodeURIComponent(provider.id)}`;
  useEffect(() => {
    if (!flow) return;
    let timer = 0, over = false;
    const later = (ms: number) => { timer = setTimeout(() => void poll(), ms); };
    const poll = async () => {
      try {
        const a = await machine.post<PollAnswer>(`${base}/poll`, {});
        if (over) return;
        if (a.connectionId || a.connection || a.status === "done" || a.status === "connected") onDone();
        else later(Math.max(a.waitMs ?? flow.intervalMs ?? 5000, 1000));
      } catch (e) {
        if (!over) { setError(words(e)); setFlow(null); }
      }
    };
    later(flow.intervalMs ?? 5000);
    return () => { over = true; clearTimeout(timer); };
  }, [flow]);
  const left = flow?.expiresAt ? flow.expiresAt - now : 0;
  return (
    <section class="oauth stack" aria-label="Connect by sign-in">
      {!flow && (
        <div class="row wrap">
          {has(device) && <Button kind="main" busy={start.busy} onClick={() => void start.run(async () => {
            setError("");
            began.current = Date.now();
            setFlow(await machine.post<DeviceAnswer>(`${base}/device`, {}));
          })}>Connect with a code</Button>}
          {has(authorize) && <Button busy={start.busy} onClick={() => void start.run(async () => {
            const a = await machine.post<{ url: string }>(`${base}/authorize`, {});
            const url = link(a.url);
            if (!url) throw new Error("The gateway gave no address to sign in at.");
            location.assign(url);
          })}>Connect by signing in there</Button>}
        </div>
      )}
      {flow && (
        <div class="device" role="status">
          <p>Enter this code at <a href={link(flow.verificationUriComplete ?? flow.verificationUri)} target="_blank" rel="noreferrer">{flow.verificationUri}</a></p>
          <p class="usercode">{flow.userCode}</p>
          <Copy text={flow.userCode} label="Copy the code" />
          {flow.expiresAt && left > 0 && (
            <>
              <progress aria-label="Time left" max={flow.expiresAt - began.current} value={left} />
              <p class="muted" aria-hidden="true">Waiting for you to confirm; {duration(left)} left.</p>
            </>
          )}
        </div>
      )}
      {(error || start.error) && <ErrorBox>{error || start.error}</ErrorBox>}
      <p class="muted">or with a key:</p>
    </section>
  );
}
