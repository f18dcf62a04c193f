import { useEffect, useRef, useState } from "preact/hooks";
import { accept, byPasskey, providers, signInAt } from "./api";
import type { Session } from "./api-types";
import { Code } from "./code";
import { Text } from "./forms";
import { useAction, useLoad } from "./hooks";
import { homeOf } from "./pages";
import { go, type Invitation, to } from "./route";
import { Button, ErrorBox, Field, Notice } from "./ui";

// Invited accepts an invitation: by a passkey, by an identity provider, or by a name alone. Then it
// shows the personal token of the next sign-ins.
export default function Invited({
  of,
  session,
  onSession,
  onDone,
}: {
  of: Invitation;
  session: Session;
  onSession: (s: Session) => void;
  onDone: () => void;
}) {
  const [name, setName] = useState("");
  const [token, setToken] = useState("");
  const act = useAction();
  const offered = useLoad(providers, []).data ?? [];
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = "Invitation · weir";
    head.current?.focus();
  }, [token]);
  const passkeys = offered.some((p) => p.id === byPasskey);
  const acceptByName = () =>
    act.run(async () => {
      const s = await accept(of.secret, name.trim());
      setToken(s.token ?? "");
      onSession({ ...s, token: undefined });
    });
  const acceptBy = (way: (m: typeof import("./passkey")) => Promise<Session>) =>
    act.run(async () => {
      const s = await way(await import("./passkey"));
      onSession(s);
      leave(s);
    });
  const submit = (e: Event) => {
    e.preventDefault();
    void (passkeys ? acceptBy((m) => m.acceptByPasskey(of.secret, name.trim())) : acceptByName());
  };
  const signInBy = (id: string) =>
    id === byPasskey
      ? acceptBy((m) => m.signInByPasskey(of.secret))
      : act.run(async () => location.assign(await signInAt(id, of.secret)));
  const leave = (s: Session) => {
    const [machineId] = Object.keys(s.roles ?? {});
    go(machineId && machineId !== "*" ? to(machineId, homeOf(s.roles?.[machineId])) : "#/machines");
    onDone();
  };
  const named = of.renews || !!name.trim();
  if (token)
    return (
      <main class="alone">
        <div class="card signin">
          <h1 tabIndex={-1} ref={head}>
            Welcome, <bdi>{session.personName}</bdi>
          </h1>
          <p>
            This is your personal sign-in token. Save it in your password manager: you need it in other browsers, and
            after 12 hours.
          </p>
          <Code label="Personal sign-in token" text={token} />
          <Notice kind="warn">You won’t see it again. An owner can send you a new link.</Notice>
          <Button kind="main" onClick={() => leave(session)}>
            Continue
          </Button>
        </div>
      </main>
    );
  return (
    <main class="alone">
      <div class="card signin">
        <img src="/assets/icon.svg" alt="" width="44" height="44" />
        <h1 tabIndex={-1} ref={head}>
          {of.renews ? "Sign in to weir again" : "You are invited to weir"}
        </h1>
        <p class="muted">weir is a gateway to AI providers. This link works once.</p>
        {session.signedIn && (
          <Notice kind="warn">
            You are signed in in this browser. Accepting ends that session and starts another.
          </Notice>
        )}
        <form onSubmit={submit}>
          {!of.renews && (
            <Field label="Your name" hint="Shown to the owners of the machine.">
              <Text required max={100} value={name} onText={setName} />
            </Field>
          )}
          {act.error && <ErrorBox>{act.error}</ErrorBox>}
          <Button kind="main" type="submit" busy={act.busy} disabled={!named}>
            {passkeys ? "Create a passkey" : of.renews ? "Sign in" : "Accept invitation"}
          </Button>
          {passkeys && (
            <p class="muted small">
              Your fingerprint, face or PIN signs you in from then on. Without a passkey you get a token to keep.
            </p>
          )}
        </form>
        {passkeys && (
          <Button busy={act.busy} disabled={!named} onClick={() => void acceptByName()}>
            Continue with a token
          </Button>
        )}
        {!of.renews &&
          offered.map((p) => (
            <Button key={p.id} busy={act.busy} onClick={() => void signInBy(p.id)}>
              Accept with {p.id === byPasskey ? "an existing passkey" : p.name}
            </Button>
          ))}
        <Button kind="link" onClick={onDone}>
          Not now
        </Button>
      </div>
    </main>
  );
}
