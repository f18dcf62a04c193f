import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { on, raw, whoami, words, type Machine, type Session } from "./api";
import { Dialog } from "./dialog";
import { belongTo } from "./drafts";
import { useLoad } from "./hooks";
import type { IconName } from "./icons";
import { SignIn } from "./signin";
import { Shell } from "./shell";
import { ErrorBox, Skeleton } from "./ui";

// Has tells whether this build serves a route, "GET /api/usage".
export type Has = (route: string) => boolean;

// PageProps is what every page of a machine gets. Address and parts of it are
// those of route.ts.
export interface PageProps {
  machine: Machine;
  session: Session;
  has: Has;
  /** what follows the page in the address */
  args: string[];
  /** of the machine, where it has one and the operator looks at it */
  machineName?: string;
}

export interface PageEntry {
  path: string;
  label: string;
  icon: IconName;
  /** a route without which the page is not offered */
  needs?: string;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

// pages are the parts of the dashboard, in the order of the navigation. Each
// is fetched when it is first opened.
const pages: PageEntry[] = [
  { path: "providers", label: "Providers", icon: "providers", load: () => import("./pages/providers") },
  { path: "models", label: "Models", icon: "models", load: () => import("./pages/models") },
  { path: "combos", label: "Combos", icon: "combos", load: () => import("./pages/combos") },
  { path: "keys", label: "Keys", icon: "keys", load: () => import("./pages/keys") },
  { path: "usage", label: "Usage", icon: "usage", load: () => import("./pages/usage") },
  {
    path: "requests",
    label: "Requests",
    icon: "requests",
    needs: "GET /api/requests",
    load: () => import("./pages/requests"),
  },
  { path: "playground", label: "Playground", icon: "playground", load: () => import("./pages/playground") },
  { path: "explain", label: "Explain", icon: "explain", load: () => import("./pages/explain") },
  { path: "settings", label: "Settings", icon: "settings", load: () => import("./pages/settings") },
];

export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [why, setWhy] = useState("");
  const [error, setError] = useState("");
  const [asking, setAsking] = useState<((ok: boolean) => void) | null>(null);
  const features = useLoad(
    async () => new Set((await (await raw("GET", "/api/features")).json()).routes as string[]),
    [],
  );

  const out = (text: string) => {
    setWhy(text);
    setSession({ signedIn: false, operator: false });
  };
  const load = () => {
    setError("");
    whoami().then(setSession, (e) => setError(words(e)));
  };
  useEffect(() => {
    on({ ended: out, reauth: () => new Promise((resolve) => setAsking(() => resolve)) });
    load();
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

  belongTo(session.operator ? "operator" : `${session.machineId} ${session.keyId ?? session.keyName}`);
  const served = features.data;
  const answer = (ok: boolean) => {
    asking?.(ok);
    setAsking(null);
  };
  return (
    <>
      <Shell pages={pages} session={session} has={(route) => served.has(route)} onOut={out} />
      {asking && (
        <Dialog title="Sign in again" onClose={() => answer(false)}>
          <p>
            This cannot be undone, so the gateway asks for the {session.operator ? "operator’s token" : "manage key"}{" "}
            once more.
          </p>
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
