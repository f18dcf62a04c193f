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
              : "This token or key isn’t valid here, or was replaced. Copy all of it again, or ask for a new one.",
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
      <Field label="Token or key" hint="It isn’t stored in this browser.">
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
          <a href="/docs/guides/leaked-token">Lost your token?</a> Ask an owner of your machine for a new link.
          Operators run <code>weir init</code>; on Cloudflare, <code>./build.sh deploy</code> printed the token once.
        </p>
      </div>
    </main>
  );
}
