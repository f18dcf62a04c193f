import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, Machine, signOut, words, type Session } from "./api";
import type { Has, PageEntry } from "./app";
import { Dialog } from "./dialog";
import { discardDrafts, unsaved } from "./drafts";
import { useLoad } from "./hooks";
import { Icon } from "./icons";
import { Guard, Lazy } from "./lazy";
import { go, to, useRoute } from "./route";
import { ThemeButton } from "./theme";
import { Toasts } from "./toast";
import { Button, Empty, ErrorBox, number } from "./ui";
import type { MachineList } from "./machines";

const machinesPage = () => import("./machines");

// Shell is the frame around every page: where one is, where one can go, who is
// signed in.
export function Shell({
  pages,
  session,
  has,
  onOut,
}: {
  pages: PageEntry[];
  session: Session;
  has: Has;
  onOut: (why: string) => void;
}) {
  const route = useRoute();
  const machineId = session.operator ? route.machineId : session.machineId!;
  // What is no id never becomes a part of a path.
  const machine = useMemo(() => (/^[a-z0-9]{16}$/.test(machineId) ? new Machine(machineId) : null), [machineId]);
  // The first page of machines to choose from, and the current one.
  const list = useLoad(async () => {
    if (!session.operator) return { data: [], total: 0 };
    const page = await call<MachineList>("GET", "/api/machines");
    if (machineId && !page.data.some((m) => m.machineId === machineId)) {
      const found = await call<MachineList>("GET", `/api/machines?q=${encodeURIComponent(machineId)}`);
      page.data.push(...found.data.filter((m) => m.machineId === machineId));
    }
    return page;
  }, [session.operator, machineId]);
  const offered = useMemo(() => pages.filter((p) => !p.needs || has(p.needs)), []);
  const main = useRef<HTMLElement>(null);
  const [open, setOpen] = useState(false); // the menu, where the screen is narrow
  const [error, setError] = useState("");

  useEffect(() => {
    setOpen(false);
    if (!session.operator && route.machineId !== machineId) go(to(machineId, "providers"));
  }, [location.hash]);

  // The playground's key goes with the page, and with the machine.
  useEffect(() => {
    if (!machine) return;
    const leave = () => void machine.forget();
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      leave();
    };
  }, [machine]);

  const [leaving, setLeaving] = useState<{ all: boolean } | null>(null);
  const out = async (all: boolean, sure = false) => {
    setError("");
    if (unsaved() && !sure) return setLeaving({ all });
    setLeaving(null);
    try {
      await machine?.forget();
      await signOut(all);
      discardDrafts();
      onOut(all ? "You are signed out everywhere." : "You are signed out.");
    } catch (e) {
      setError(words(e));
    }
  };
  const page = route.page || "providers";
  const entry = offered.find((p) => p.path === page);
  const machineName = list.data?.data.find((m) => m.machineId === machineId)?.name;

  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class={open ? "side open" : "side"}>
        <div class="row between brand">
          <a href={session.operator ? "#/machines" : to(machineId, "providers")} class="logo">
            <img src="/assets/icon.svg" alt="" width="26" height="26" />
            weir
          </a>
          <span class="row tight">
            <ThemeButton />
            <button
              type="button"
              class="quiet icon menu"
              aria-expanded={open}
              aria-controls="menu"
              aria-label="Menu"
              onClick={() => setOpen(!open)}
            >
              <Icon name={open ? "close" : "menu"} />
            </button>
          </span>
        </div>
        <div id="menu">
          {session.operator && (
            <label class="field machine">
              <span>Machine</span>
              <select
                value={machineId}
                onChange={(e) =>
                  go(e.currentTarget.value ? to(e.currentTarget.value, entry?.path ?? "providers") : "#/machines")
                }
              >
                <option value="">
                  {list.data && list.data.total > list.data.data.length
                    ? `All machines (${number(list.data.total)})`
                    : "All machines"}
                </option>
                {list.data?.data.map((m) => (
                  <option key={m.machineId} value={m.machineId}>
                    {m.name ? `${m.name} · ${m.machineId}` : m.machineId}
                  </option>
                ))}
                {machineId && !list.data?.data.some((m) => m.machineId === machineId) && (
                  <option value={machineId}>{machineId}</option>
                )}
              </select>
            </label>
          )}
          <nav aria-label="Pages">
            {session.operator && (
              <a href="#/machines" aria-current={machineId ? undefined : "page"}>
                <Icon name="machines" />
                Machines
              </a>
            )}
            {machine &&
              offered.map((p) => (
                <a key={p.path} href={to(machineId, p.path)} aria-current={p.path === page ? "page" : undefined}>
                  <Icon name={p.icon} />
                  {p.label}
                </a>
              ))}
          </nav>
          <div class="who">
            <small>
              {session.operator
                ? "Signed in as the operator"
                : `Signed in with the key ${session.keyName || "without a name"}`}
            </small>
            <div class="row tight">
              <Button kind="quiet" icon="out" onClick={() => void out(false)}>
                Sign out
              </Button>
              <Button kind="quiet" title="Ends every session of this token or key" onClick={() => void out(true)}>
                Sign out everywhere
              </Button>
            </div>
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {error && <ErrorBox>{error}</ErrorBox>}
        <Guard key={machineId + "/" + page}>
          {machineId && !machine ? (
            <Empty title="Machine not found">
              <a class="button" href="#/machines">
                Back to the machines
              </a>
            </Empty>
          ) : !machine ? (
            <Lazy load={machinesPage} props={{ onChange: list.reload }} what="the machines" />
          ) : entry ? (
            <Lazy
              load={entry.load}
              props={{ machine, session, has, args: route.args, machineName }}
              what={entry.label.toLowerCase()}
            />
          ) : (
            <Empty title="There is no such page">
              <a class="button" href={to(machineId, "providers")}>
                To the providers
              </a>
            </Empty>
          )}
        </Guard>
      </main>
      <Toasts />
      {leaving && (
        <Dialog title="Sign out?" onClose={() => setLeaving(null)}>
          <p>Unsaved changes will be lost.</p>
          <div class="row">
            <Button kind="danger" onClick={() => void out(leaving.all, true)}>
              Discard and sign out
            </Button>
            <Button onClick={() => setLeaving(null)}>Stay</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
