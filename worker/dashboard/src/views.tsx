// Saved views of a page: its filters, period and columns, which are in its address, under a name.
import type { Machine } from "./api";
import "./views.css";
import { useState } from "preact/hooks";
import { Icon } from "./icons";
import type { PageProps } from "./page";
import { Popover } from "./popover";
import { remember, remembered } from "./remembered";
import { go, to } from "./route";
import { toast } from "./toast";
import { Button, Cut, Field, Empty } from "./ui";

interface View {
  name: string;
  /** the query of the address, sorted */
  query: string;
}

const longestName = 60;

// viewsOf reads stored views, and leaves out what is not one.
function viewsOf(stored: string | null): View[] {
  try {
    const all: unknown = JSON.parse(stored ?? "[]");
    const isView = (v: unknown): v is View =>
      typeof (v as View)?.name === "string" && typeof (v as View).query === "string";
    return Array.isArray(all) ? all.filter(isView) : [];
  } catch {
    return [];
  }
}

// present returns the query of the address, in an order that does not depend on that of the clicks.
function present(): string {
  const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
  query.sort();
  return query.toString();
}

// Views opens, saves, renames and deletes views of a page of a machine.
export function Views({ machine, page }: Pick<PageProps, "machine"> & { page: string }) {
  const stored = `weir-views-${machine.id}-${page}`;
  const [views, set] = useState(() => viewsOf(remembered(stored)));
  const [name, setName] = useState("");
  const [renamed, rename] = useState<View | null>(null);
  const now = present();
  const shown = views.find((v) => v.query === now);
  // change reads the views again, which another tab may have changed.
  const change = (of: (views: View[]) => View[]) => {
    const next = of(viewsOf(remembered(stored))).sort((a, b) => a.name.localeCompare(b.name));
    set(next);
    if (!remember(stored, JSON.stringify(next))) toast("This browser doesn’t store views. Bookmark the page instead.");
  };
  const edit = (of: View | null) => {
    rename(of);
    setName(of?.name ?? "");
  };
  const save = () => {
    const saved = { name: name.trim(), query: renamed?.query ?? present() };
    change((all) => [...all.filter((v) => v.name !== saved.name && v.name !== renamed?.name), saved]);
    edit(null);
  };
  const remove = (of: View) => {
    change((all) => all.filter((v) => v.name !== of.name));
    toast(`Deleted ${of.name}.`, async () => change((all) => [...all.filter((v) => v.name !== of.name), of]));
  };
  return (
    <Popover label={<Cut>{shown?.name ?? "Views"}</Cut>} name={shown && `View: ${shown.name}`}>
      {(close) => (
        <div class="stack views">
          {views.length > 0 && (
            <ul aria-label="Saved views">
              {views.map((v) => (
                <li key={v.name} class="row tight">
                  <button
                    type="button"
                    class="quiet"
                    aria-current={v === shown || undefined}
                    onClick={() => {
                      close();
                      go(to(machine.id, page) + (v.query && `?${v.query}`));
                    }}
                  >
                    <Cut>{v.name}</Cut>
                    {v === shown && <Icon name="check" />}
                  </button>
                  <Button kind="quiet" aria-label={`Rename ${v.name}`} onClick={() => edit(v)}>
                    Rename
                  </Button>
                  <Button kind="quiet" icon="close" aria-label={`Delete ${v.name}`} onClick={() => remove(v)} />
                </li>
              ))}
            </ul>
          )}
          <form
            class="row tight end"
            onSubmit={(e) => {
              e.preventDefault();
              save();
              if (!renamed) close();
            }}
          >
            <Field label={renamed ? `Rename ${renamed.name}` : "Save this view as"}>
              <input required maxLength={longestName} value={name} onInput={(e) => setName(e.currentTarget.value)} />
            </Field>
            <Button type="submit" disabled={name.trim() === ""}>
              {renamed ? "Rename" : "Save"}
            </Button>
            {renamed && (
              <Button kind="quiet" onClick={() => edit(null)}>
                Cancel
              </Button>
            )}
          </form>
          <p class="muted small">Saved in this browser. To share a view, copy the page’s address.</p>
        </div>
      )}
    </Popover>
  );
}

// NoRequests stands where a machine has had no request, and leads to the first.
export const NoRequests = ({ machine }: { machine: Machine }) => (
  <Empty title="No requests yet">
    <p>Requests appear here within seconds.</p>
    <div class="row wrap">
      <a class="button main" href={to(machine.id, "connect")}>
        Connect a tool
      </a>
      <a class="button" href={to(machine.id, "playground")}>
        Open the playground
      </a>
    </div>
  </Empty>
);
