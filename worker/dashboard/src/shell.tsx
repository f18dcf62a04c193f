import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { byPasskey, call, errorText, Machine, providers, signOut } from "./api";
import type { MachinePage, Session } from "./api-types";
import { Dialog } from "./dialog";
import { discardDrafts, unsaved } from "./drafts";
import { number } from "./format";
import { useLoad } from "./hooks";
import { Icon } from "./icons";
import { Guard, Lazy } from "./lazy";
import { type ConfigFile, Managed, ManagedBy } from "./managed";
import type { Has } from "./page";
import { home, homeOf, pages } from "./pages";
import type { PaletteProps } from "./palette";
import { atLeast, roleNames, roleOn } from "./roles";
import { go, to, useRoute } from "./route";
import { ThemeButton } from "./theme";
import { Toasts } from "./toast";
import { Button, Empty, ErrorBox } from "./ui";

const loadPalette = () => import("./palette");
const devicePage = () => import("./device");
const machinesPage = () => import("./machines");
const identityPage = () => import("./identity");
const passkeysPage = () => import("./passkeys");

// alone are the pages outside a machine, besides the list of machines.
const alone = ["identity-providers", "passkeys"];

// Shell is the frame of every page: the navigation, the choice of the machine and
// the signed-in user.
export function Shell({ session, has, onOut }: { session: Session; has: Has; onOut: (why: string) => void }) {
  const route = useRoute();
  const single = session.machineId; // of a management key
  const machineId = single ?? route.machineId;
  const role = roleOn(session, machineId);
  // Only a valid machine id is put into a path.
  const machine = useMemo(
    () => (/^[a-z0-9]{16}$/.test(machineId) && role ? new Machine(machineId, role) : null),
    [machineId, role],
  );
  // The machines to choose from: the first page of the list, and the current one.
  const list = useLoad(async () => {
    if (single) return { data: [], total: 0, of: "" };
    const page = await call<MachinePage>("GET", "/api/machines");
    if (machineId && !page.data.some((m) => m.machineId === machineId)) {
      const matches = await call<MachinePage>("GET", `/api/machines?q=${encodeURIComponent(machineId)}`);
      page.data.push(...matches.data.filter((m) => m.machineId === machineId));
    }
    return { ...page, of: machineId };
  }, [single, machineId]);
  const unknown = list.data?.of === machineId && !list.data.data.some((m) => m.machineId === machineId);
  const file = useLoad(
    async () =>
      (machine?.may("viewer") ? (await machine.get<{ file?: ConfigFile }>("/health")).file : undefined) ?? null,
    [machine],
  );
  const offered = useMemo(
    () => pages.filter((p) => (!p.needs || has(p.needs)) && role && atLeast(role, p.role ?? "viewer")),
    [role],
  );
  const ways = useLoad(async () => (session.personId ? await providers() : []), [session.personId]);
  const main = useRef<HTMLElement>(null);
  const [open, setOpen] = useState(false); // the menu on a narrow screen
  const [error, setError] = useState("");

  // Ctrl-K or ⌘K opens the palette, unless a dialog is open.
  const [Palette, setPalette] = useState<ComponentType<PaletteProps> | null>(null);
  const find = () =>
    void loadPalette().then(
      (m) => setPalette(() => m.default),
      () => setError("Couldn’t load the search. Reload the page."),
    );
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== "k" || !(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey) return;
      e.preventDefault();
      if (!document.querySelector("dialog[open]")) find();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  useEffect(() => {
    setOpen(false);
    setError("");
    if (single && route.machineId !== machineId && route.page !== "device") go(to(machineId, home));
  }, [location.hash]);

  // Someone with one machine starts with it.
  const started = useRef(false);
  useEffect(() => {
    if (!list.data || started.current) return;
    started.current = true;
    const [only] = list.data.data;
    if (!single && !route.machineId && !route.page && list.data.total === 1)
      location.replace(to(only.machineId, homeOf(roleOn(session, only.machineId))));
  }, [list.data]);

  // Revoke the playground's key when the page is closed or shows another machine.
  useEffect(() => {
    if (!machine) return;
    const leave = () => void machine.revokePlaygroundKey();
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      leave();
    };
  }, [machine]);

  const [leaving, setLeaving] = useState<{ all: boolean } | null>(null);
  const out = async (all: boolean, sure = false) => {
    setError("");
    if ((all || unsaved()) && !sure) return setLeaving({ all });
    setLeaving(null);
    try {
      await machine?.revokePlaygroundKey();
      await signOut(all);
      discardDrafts();
      onOut(all ? "You have been signed out everywhere." : "You have been signed out.");
    } catch (e) {
      setError(errorText(e));
    }
  };
  const first = homeOf(role);
  const page = route.page || first;
  const entry = offered.find((p) => p.path === page);
  const barred = pages.some((p) => p.path === page && role && !atLeast(role, p.role ?? "viewer"));
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
        Skip to content
      </a>
      <header class={open ? "side open" : "side"}>
        <div class="row between brand">
          <a href={single ? to(machineId, home) : "#/machines"} class="logo">
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
          {!single && (
            <label class="field machine" title="A workspace">
              <span>Machine</span>
              <select
                value={machineId}
                onChange={(e) =>
                  go(
                    e.currentTarget.value
                      ? to(e.currentTarget.value, session.operator ? (entry?.path ?? home) : "")
                      : "#/machines",
                  )
                }
              >
                <option value="">
                  {list.data && list.data.total > list.data.data.length
                    ? `All machines (${number(list.data.total)})`
                    : "All machines"}
                </option>
                {list.data?.data.map((m, _, all) => (
                  <option key={m.machineId} value={m.machineId}>
                    {[m.name, (!m.name || all.some((o) => o !== m && o.name === m.name)) && m.machineId]
                      .filter(Boolean)
                      .join(" · ")}
                  </option>
                ))}
                {machineId && !list.data?.data.some((m) => m.machineId === machineId) && (
                  <option value={machineId}>{machineId}</option>
                )}
              </select>
            </label>
          )}
          <button type="button" class="goto" onClick={find} aria-keyshortcuts="Control+K Meta+K">
            <Icon name="search" />
            Go to…
            <kbd aria-hidden="true">{/Mac|iP/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
          </button>
          <nav aria-label="Pages">
            {machine &&
              !unknown &&
              offered.map((p) => (
                <a
                  key={p.path}
                  href={to(machineId, p.path)}
                  aria-current={p.path === page ? "page" : undefined}
                  class={p.first ? "first" : ""}
                >
                  <Icon name={p.icon} />
                  {p.title}
                </a>
              ))}
            {!single && (
              <a
                href="#/machines"
                class="first"
                aria-current={machineId || alone.includes(route.page) ? undefined : "page"}
              >
                <Icon name="machines" />
                Machines
              </a>
            )}
            {session.operator && has("GET /api/identity-providers") && (
              <a
                href="#/identity-providers"
                aria-current={!machineId && route.page === "identity-providers" ? "page" : undefined}
              >
                <Icon name="signin" />
                Sign-in
              </a>
            )}
            <a href="/docs" target="_blank" rel="noreferrer" class={single ? "first" : ""}>
              <Icon name="docs" />
              Docs
            </a>
          </nav>
          <div class="who">
            <small>
              {session.operator
                ? "Signed in with the operator token"
                : session.personId
                  ? `Signed in as ${session.personName ?? "a person"}${role ? ` (${roleNames[role].toLowerCase()})` : ""}`
                  : session.keyName
                    ? `Signed in with key ${session.keyName}`
                    : "Signed in with an unnamed key"}
            </small>
            <div class="row tight">
              {ways.data?.some((w) => w.id === byPasskey) && (
                <a
                  class="button quiet"
                  href="#/passkeys"
                  aria-current={!machineId && route.page === "passkeys" ? "page" : undefined}
                >
                  <Icon name="keys" />
                  Passkeys
                </a>
              )}
              <Button kind="quiet" icon="out" onClick={() => void out(false)}>
                Sign out
              </Button>
              <Button kind="quiet" icon="out" onClick={() => void out(true)}>
                Sign out everywhere
              </Button>
            </div>
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1} data-role={role}>
        {error && <ErrorBox>{error}</ErrorBox>}
        <Guard key={`${machineId}/${page}`}>
          {!route.machineId && route.page === "device" ? (
            <Lazy load={devicePage} props={{ session, machines: list.data?.data ?? [] }} what="the sign-in" />
          ) : !route.machineId && route.page === "identity-providers" && session.operator ? (
            <Lazy load={identityPage} props={{ machines: list.data?.data ?? [] }} what="the identity providers" />
          ) : !route.machineId && route.page === "passkeys" && session.personId ? (
            <Lazy load={passkeysPage} props={{}} what="passkeys" />
          ) : machineId && (!machine || unknown) ? (
            <Empty page title="Machine not found">
              <p>
                {session.personId
                  ? "It was deleted, or you have no access to it. Ask one of its owners."
                  : "It was deleted, or its address is wrong."}
              </p>
              <a class="button" href="#/machines">
                Back to machines
              </a>
            </Empty>
          ) : !machine ? (
            <Lazy load={machinesPage} props={{ session, onChange: list.reload }} what="machines" />
          ) : entry ? (
            <ManagedBy.Provider value={file.data}>
              <Managed of={entry.rows ?? []} />
              <Lazy
                load={entry.load}
                props={{ machine, session, has, args: route.args, machineName }}
                what={entry.title.toLowerCase()}
              />
            </ManagedBy.Provider>
          ) : (
            <Empty page title={barred ? "Not permitted" : "Page not found"}>
              <p>
                {barred
                  ? "This page needs a higher role. Ask an owner of this machine."
                  : "The address is wrong, or this gateway has no such page."}
              </p>
              <a class="button" href={to(machineId, first)}>
                {first === home ? "Go to the overview" : "Go to the first page"}
              </a>
            </Empty>
          )}
        </Guard>
      </main>
      <Toasts />
      {Palette && (
        <Palette
          machine={unknown ? null : machine}
          machines={list.data?.data ?? []}
          pages={unknown ? [] : offered}
          onClose={() => setPalette(null)}
        />
      )}
      {leaving && (
        <Dialog title="Sign out?" onClose={() => setLeaving(null)}>
          {leaving.all && <p>Every session of this token, key or person ends.</p>}
          {unsaved() && <p>Your unsaved changes will be lost.</p>}
          <div class="row">
            <Button kind="danger" onClick={() => void out(leaving.all, true)}>
              {unsaved() ? "Discard and sign out" : "Sign out"}
            </Button>
            <Button onClick={() => setLeaving(null)}>Stay signed in</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
