import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { raw } from "./api";
import { useAction } from "./hooks";
import { Button, Empty, ErrorBox, Skeleton } from "./ui";

type Module<P> = { default: ComponentType<P> };

// Lazy shows a component whose code is loaded when it is first needed. After a
// deployment the old files are gone: the user reloads the dashboard then.
export function Lazy<P extends object>({
  load,
  props,
  what,
}: {
  load: () => Promise<Module<P>>;
  props: P;
  what: string;
}) {
  const [state, set] = useState<{ of: typeof load; View: ComponentType<P> | null; failed: boolean }>({
    of: load,
    View: null,
    failed: false,
  });
  useEffect(() => {
    let over = false;
    load().then(
      (m) => {
        if (!over) set({ of: load, View: m.default, failed: false });
      },
      () => {
        if (!over) set({ of: load, View: null, failed: true });
      },
    );
    return () => {
      over = true;
    };
  }, [load]);
  if (state.of === load && state.failed) return <Broken title="Couldn’t load this page" ask />;
  if (state.of !== load || !state.View) return <Skeleton what={what} rows={5} />;
  const View = state.View;
  return <View {...props} />;
}

// Guard shows an error instead of a page that throws, and leaves the frame intact.
export class Guard extends Component<{ children?: ComponentChildren }, { failed: boolean }> {
  state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  componentDidCatch(error: unknown) {
    console.error(error);
  }
  render() {
    return this.state.failed ? <Broken title="Something went wrong on this page" /> : this.props.children;
  }
}

// reload reloads the page if the gateway answers: without it, the browser would show its own error.
async function reload() {
  await raw("GET", "/api/features");
  location.reload();
}

// Broken stands for what cannot be shown. With ask it says whether the gateway answers at all.
function Broken({ title, ask }: { title: string; ask?: boolean }) {
  const act = useAction();
  useEffect(() => {
    if (ask) void act.run(() => raw("GET", "/api/features"));
  }, []);
  return (
    <Empty title={title}>
      {act.error && <ErrorBox>{act.error}</ErrorBox>}
      <Button kind="main" busy={act.busy} onClick={() => void act.run(reload)}>
        Reload
      </Button>
    </Empty>
  );
}
