import { Component, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Empty, Skeleton } from "./ui";

type Module<P> = { default: ComponentType<P> };

// Lazy shows a component whose code is fetched when it is first needed. After
// a deployment the code of before is gone: the page is loaded anew then.
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
  if (state.of === load && state.failed) return <Broken title="This page could not be fetched" />;
  if (state.of !== load || !state.View) return <Skeleton what={what} rows={5} />;
  const View = state.View;
  return <View {...props} />;
}

// Guard keeps a page that fails from taking the others with it.
export class Guard extends Component<{ children?: ComponentChildren }, { failed: boolean }> {
  state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  componentDidCatch(error: unknown) {
    console.error(error);
  }
  render() {
    return this.state.failed ? <Broken title="This page failed" /> : this.props.children;
  }
}

function Broken({ title }: { title: string }) {
  return (
    <Empty title={title}>
      <Button kind="main" onClick={() => location.reload()}>
        Load the dashboard anew
      </Button>
    </Empty>
  );
}
