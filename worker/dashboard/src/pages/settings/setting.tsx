import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { Field } from "../../ui";

// Asked is the label of the setting that the address names: settings/routing/Time%20zone.
export const Asked = createContext<string | undefined>(undefined);

// Setting is a Field that gets the focus if the address names it.
export function Setting(of: Parameters<typeof Field>[0]) {
  const asked = useContext(Asked),
    ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (asked !== of.label) return;
    ref.current!.closest("details")?.setAttribute("open", "");
    ref.current!.querySelector<HTMLElement>("input, select")!.focus();
  }, [asked]);
  return (
    <div ref={ref}>
      <Field {...of} />
    </div>
  );
}
