import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, byPasskey, providers, signIn, signInAt, whoami } from "./api";
import type { Session } from "./api-types";
import { useAction, useLoad } from "./hooks";
import { leaveFor } from "./route";
import { Button, ErrorBox, Field, Notice } from "./ui";

// SignIn exchanges a token or key for a session. With inside it is only the form,
// for a dialog.
export function SignIn({ why = "", onDone, inside }: { why?: string; onDone: (s: Session) => void; inside?: boolean }) {
  const [token, set] = useState("");
  const action = useAction();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!inside) {
      document.title = "Sign in · weir";
      field.current?.focus();
    }
  }, []);
  const submit = (e: Event) => {
    e.preventDefault();
    void action.run(async () => {
      const [text, link] = token.trim().split("#/sign-in/"); // a sign-in link is taken too
      const session = await signIn(link ?? text).catch((e: unknown) => {
        if (e instanceof ApiError && e.status === 401)
          throw new Error(
            link
              ? "This sign-in link has expired or was used before."
              : "This is not the operator token or a management key.",
          );
        throw e;
      });
      set("");
      onDone(session);
    });
  };
  const known = useLoad(providers, []);
  // In a dialog the page stays: the provider has a tab of its own, and its session counts here too.
  const begin = (id: string) =>
    action.run(async () => {
      if (id === byPasskey) return onDone(await (await import("./passkey")).signInByPasskey());
      const url = await signInAt(id);
      if (!inside) return leaveFor(url);
      open(url, "_blank", "noopener");
      addEventListener("focus", () => void whoami().then((s) => s.signedIn && onDone(s)), { once: true });
    });
  const form = (
    <form onSubmit={submit}>
      {!!known.data?.length && (
        <div class="ways">
          {known.data.map((p) => (
            <Button key={p.id} onClick={() => void begin(p.id)}>
              Sign in with <bdi>{p.name}</bdi>
            </Button>
          ))}
          <p class="muted">or</p>
        </div>
      )}
      <Field label="Operator token, personal token or management key" hint="Your token isn’t stored in this browser.">
        <input
          ref={field}
          type="password"
          name="token"
          autocomplete="current-password"
          required
          value={token}
          onInput={(e) => set(e.currentTarget.value)}
        />
      </Field>
      {action.error && <ErrorBox>{action.error}</ErrorBox>}
      <Button type="submit" kind="main" busy={action.busy} disabled={!token.trim()}>
        Sign in
      </Button>
    </form>
  );
  if (inside) return form;
  return (
    <main class="alone">
      <div class="card signin">
        <img src="/assets/icon.svg" alt="" width="44" height="44" />
        <h1>Sign in to weir</h1>
        <p class="muted">weir is a gateway to AI providers.</p>
        {why && <Notice>{why}</Notice>}
        {form}
        <p class="muted">
          On a server of your own, the <code>weir init</code> command that its start printed makes a link. On
          Cloudflare, <code>./build.sh deploy</code> printed the operator token once.
        </p>
      </div>
    </main>
  );
}
