import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, signIn } from "./api";
import type { Session } from "./api-types";
import { useAction } from "./hooks";
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
      const session = await signIn(token.trim()).catch((e: unknown) => {
        if (e instanceof ApiError && e.status === 401)
          throw new Error(
            "This is not the operator token or a management key. Keys that only call models cannot sign in.",
          );
        throw e;
      });
      set("");
      onDone(session);
    });
  };
  const form = (
    <form onSubmit={submit}>
      <Field label="Operator token or management key" hint="Your token isn’t stored in this browser.">
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
        <p class="muted">weir is a gateway to AI providers. Each machine has its own providers, keys and models.</p>
        {why && <Notice>{why}</Notice>}
        {form}
        <p class="muted">
          The operator token is in <code>.weir/dev.json</code> after <code>./build.sh dev</code> or{" "}
          <code>./build.sh serve</code>; <code>./build.sh deploy</code> prints it once. On a server of your own,{" "}
          <code>weir init</code> prints a link that signs you in.
        </p>
      </div>
    </main>
  );
}
