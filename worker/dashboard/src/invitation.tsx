import { useEffect, useRef, useState } from "preact/hooks";
import { accept, ApiError, byPasskey, errorText, providers, raw, signInAt } from "./api";
import type { InvitationOffer, Session } from "./api-types";
import { money } from "./amounts";
import { Code } from "./code";
import { Ask } from "./dialog";
import { Text } from "./forms";
import { useAction, useLoad } from "./hooks";
import { Load } from "./layout";
import { homeOf } from "./pages";
import { perWindow } from "./pages/budgets/windows";
import { roleCan } from "./rolecan";
import { go, to } from "./route";
import { Time } from "./time";
import { Button, ErrorBox, Field, Notice } from "./ui";

// offerOf returns what an invitation is for, or why it can no longer be accepted.
async function offerOf(invitation: string): Promise<InvitationOffer | string> {
  try {
    return await (await raw("POST", "/api/session", { invitation, preview: true })).json();
  } catch (e) {
    if (e instanceof ApiError && e.status === 401) return errorText(e);
    throw e;
  }
}

// Invited says what an invitation is for, and accepts it: by a passkey, by an identity provider, or by a name
// alone. Then it shows the personal token of the next sign-ins.
export default function Invited({
  secret,
  session,
  onSession,
  onDone,
}: {
  secret: string;
  session: Session;
  onSession: (s: Session) => void;
  onDone: () => void;
}) {
  const [token, setToken] = useState("");
  const [touched, touch] = useState(false), // the token was copied, or at least clicked
    [asking, ask] = useState(false);
  useEffect(() => {
    if (!token || touched) return;
    const stay = (e: Event) => e.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [token, touched]);
  const loaded = useLoad(async () => {
    const [offer, ways] = await Promise.all([offerOf(secret), providers()]);
    return { offer, ways };
  }, [secret]);
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = "Invitation · weir";
    head.current?.focus();
  }, [token, loaded.data]);
  const leave = (s: Session) => {
    const [machineId] = Object.keys(s.roles ?? {});
    go(machineId && machineId !== "*" ? to(machineId, homeOf(s.roles?.[machineId])) : "#/machines");
    onDone();
  };
  const accepted = (s: Session) => {
    onSession({ ...s, token: undefined });
    if (s.token) setToken(s.token);
    else leave(s);
  };
  if (token)
    return (
      <main class="alone">
        <div class="card signin">
          <h1 tabIndex={-1} ref={head}>
            Welcome, <bdi>{session.personName}</bdi>
          </h1>
          <p>
            This is your personal sign-in token. Save it in your password manager: you need it in other browsers, and
            here after 12 hours.
          </p>
          <div onClick={() => touch(true)} onCopy={() => touch(true)}>
            <Code label="Personal sign-in token" text={token} />
          </div>
          <Notice kind="warn">You won’t see it again. An owner can send you a new link.</Notice>
          {asking ? (
            <Ask
              text="Have you copied the token? You won’t see it again."
              action="Continue without copying"
              onBack={() => ask(false)}
              onConfirm={() => leave(session)}
            />
          ) : (
            <Button kind="main" onClick={() => (touched ? leave(session) : ask(true))}>
              Continue
            </Button>
          )}
        </div>
      </main>
    );
  const offer = loaded.data?.offer;
  return (
    <main class="alone">
      <div class="card signin">
        <img src="/assets/icon.svg" alt="" width="44" height="44" />
        <h1 tabIndex={-1} ref={head}>
          {!offer ? (
            "Invitation to weir"
          ) : typeof offer === "string" ? (
            "This link no longer works"
          ) : offer.role ? (
            <>
              {offer.by && <bdi>{offer.by}</bdi>} {offer.by ? "invites you" : "You are invited"} to the machine “
              <bdi>{offer.machine}</bdi>” as {/^[eo]/.test(offer.role) ? "an" : "a"} {offer.role}
            </>
          ) : (
            "Sign in to weir again"
          )}
        </h1>
        <Load of={loaded} what="the invitation">
          {({ offer, ways }) =>
            typeof offer === "string" ? (
              <p>{offer}</p>
            ) : (
              <Offer of={offer} secret={secret} session={session} ways={ways} onAccepted={accepted} />
            )
          }
        </Load>
        <Button kind="link" onClick={onDone}>
          {typeof offer === "string" ? "Open the dashboard" : "Not now"}
        </Button>
      </div>
    </main>
  );
}

// Offer says more of an invitation, with the ways to accept it.
function Offer({
  of,
  secret,
  session,
  ways,
  onAccepted,
}: {
  of: InvitationOffer;
  secret: string;
  session: Session;
  ways: { id: string; name: string }[];
  onAccepted: (s: Session) => void;
}) {
  const [name, setName] = useState("");
  const act = useAction();
  const passkeys = ways.some((p) => p.id === byPasskey);
  const named = !of.role || !!name.trim();
  const acceptByName = () => act.run(async () => onAccepted(await accept(secret, name.trim())));
  const acceptBy = (way: (m: typeof import("./passkey")) => Promise<Session>) =>
    act.run(async () => onAccepted(await way(await import("./passkey"))));
  const submit = (e: Event) => {
    e.preventDefault();
    void (passkeys ? acceptBy((m) => m.acceptByPasskey(secret, name.trim())) : acceptByName());
  };
  const signInBy = (id: string) =>
    id === byPasskey
      ? acceptBy((m) => m.signInByPasskey(secret))
      : act.run(async () => location.assign(await signInAt(id, secret)));
  const others = of.role ? ways.filter((p) => !of.provider || p.id !== byPasskey) : [];
  return (
    <>
      {of.role ? (
        <p>
          You can {roleCan[of.role]}.
          {of.budgetUsd && ` Your budget: ${money(of.budgetUsd)}${perWindow[of.budgetWindow ?? "month"]}.`}
        </p>
      ) : (
        <p>
          This link signs you in to the machine “<bdi>{of.machine}</bdi>”.
        </p>
      )}
      <p class="muted">
        weir is a gateway to AI providers, and a machine a workspace with its own accounts, keys and usage. The link
        works once, until <Time at={of.expiresAt} />; you can open it again before you accept.
      </p>
      {session.signedIn && (
        <Notice kind="warn">You are signed in in this browser. Accepting ends that session and starts another.</Notice>
      )}
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
      {!of.provider && (
        <form onSubmit={submit}>
          {of.role && (
            <Field label="Your name" hint="Shown to the owners of the machine.">
              <Text required max={100} value={name} onText={setName} />
            </Field>
          )}
          <Button kind="main" type="submit" busy={act.busy} disabled={!named}>
            {passkeys ? "Create a passkey" : of.role ? "Accept invitation" : "Sign in"}
          </Button>
          {passkeys && (
            <p class="muted small">
              Your fingerprint, face or PIN signs you in from then on. Without a passkey you get a token to keep.
            </p>
          )}
        </form>
      )}
      {!of.provider && passkeys && (
        <Button busy={act.busy} disabled={!named} onClick={() => void acceptByName()}>
          Continue with a token
        </Button>
      )}
      {of.provider && others.length === 0 && (
        <ErrorBox>It needs an identity provider, and this gateway has none. Ask for another link.</ErrorBox>
      )}
      {others.map((p) => (
        <Button key={p.id} busy={act.busy} onClick={() => void signInBy(p.id)}>
          Accept with <bdi>{p.id === byPasskey ? "an existing passkey" : p.name}</bdi>
        </Button>
      ))}
    </>
  );
}
