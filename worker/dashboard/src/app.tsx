import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, errorText, raw, setHandlers, signIn, whoami } from "./api";
import type { Session } from "./api-types";
import { Dialog } from "./dialog";
import { setOwner } from "./drafts";
import { useLoad } from "./hooks";
import { Lazy } from "./lazy";
import { takeInvitation, comeBack, takeSignInCode } from "./route";
import { Shell } from "./shell";
import { SignIn } from "./signin";
import { ErrorBox, Skeleton } from "./ui";

const invitedPage = () => import("./invitation");

// App is the dashboard: the sign-in page, or the shell with the pages.
export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [why, setWhy] = useState("");
  const [error, setError] = useState("");
  const [invitation, setInvitation] = useState(takeInvitation);
  const [asking, setAsking] = useState<((ok: boolean) => void) | null>(null);
  const features = useLoad(
    async () => new Set((await (await raw("GET", "/api/features")).json()).routes as string[]),
    [],
  );

  const out = (text: string) => {
    setWhy(text);
    setSession({ signedIn: false, operator: false });
  };
  // One answer after the other: a link may be opened while the page asks who is signed in.
  const entered = useRef(Promise.resolve());
  const load = (code = "") => {
    setError("");
    entered.current = entered.current
      .then(() => (code ? signIn(code).catch(refusedLink) : whoami()))
      .then(setSession, (e) => setError(errorText(e)));
  };
  const refusedLink = (e: unknown) => {
    if (!(e instanceof ApiError) || e.status !== 401) throw e;
    setWhy(
      "This sign-in link has expired or was used before. Run the weir init command that weir printed at its start.",
    );
    return whoami();
  };
  useEffect(() => {
    setHandlers({ ended: out, reauth: () => new Promise((resolve) => setAsking(() => resolve)) });
    comeBack();
    load(takeSignInCode());
    const opened = () => {
      const link = takeInvitation();
      if (link) return setInvitation(link);
      const code = takeSignInCode();
      if (code) load(code);
    };
    addEventListener("hashchange", opened);
    return () => removeEventListener("hashchange", opened);
  }, []);

  const failed = error || features.error;
  if (failed || !session || !features.data) {
    return (
      <main class="alone">
        <h1 class="hidden">weir</h1>
        {failed ? (
          <ErrorBox
            retry={() => {
              load();
              void features.reload();
            }}
          >
            {failed}
          </ErrorBox>
        ) : (
          <Skeleton what="the dashboard" />
        )}
      </main>
    );
  }
  if (invitation)
    return (
      <Lazy
        load={invitedPage}
        what="the invitation"
        props={{ secret: invitation, session, onSession: setSession, onDone: () => setInvitation("") }}
      />
    );
  if (!session.signedIn)
    return (
      <SignIn
        why={why}
        onDone={(s) => {
          setWhy("");
          setSession(s);
        }}
      />
    );

  setOwner(
    session.operator ? "operator" : (session.personId ?? `${session.machineId} ${session.keyId ?? session.keyName}`),
  );
  const routes = features.data;
  const answer = (ok: boolean) => {
    asking?.(ok);
    setAsking(null);
  };
  return (
    <>
      <Shell session={session} has={(route) => routes.has(route)} onOut={out} />
      {asking && (
        <Dialog title="Sign in again" onClose={() => answer(false)}>
          <p>
            {session.personId
              ? "To continue, sign in again."
              : `To continue, enter your ${session.operator ? "operator token" : "management key"} again.`}
          </p>
          {session.operator && (
            <p class="muted">
              On a server of your own, you can instead open a new link from <code>weir init</code> and try again.
            </p>
          )}
          <SignIn
            inside
            onDone={(s) => {
              setSession(s);
              answer(true);
            }}
          />
        </Dialog>
      )}
    </>
  );
}
