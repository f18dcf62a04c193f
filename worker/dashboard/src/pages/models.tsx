import { useState } from "preact/hooks";
import type { ConnectionRow, ModelRow } from "../api-types";
import { Tabs } from "../tabs";
import { useLoad } from "../hooks";
import { kindNames, modelKinds, segmentOf } from "../kinds";
import { Page } from "../layout";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { Notice } from "../ui";
import { Aliases } from "./models/aliases";
import { Customs } from "./models/customs";
import { Detail } from "./models/detail";
import { Disabled } from "./models/disabled";
import { ModelList } from "./models/list";
import { Prices } from "./models/prices";

// segments are the lists of models, see segmentOf.
const segments: [segment: string, name: string][] = [
  ...modelKinds.map((k): [string, string] => [segmentOf(k), kindNames[k]]),
  ["web", "Web"],
];

type View = "list" | "disabled" | "aliases" | "custom" | "prices";

const views: [View, string][] = [
  ["list", "All models"],
  ["disabled", "Disabled"],
  ["aliases", "Aliases"],
  ["custom", "Custom"],
  ["prices", "Prices"],
];

// Models is the list of models as the machine's clients see it, and what changes it:
// disabled models, aliases, custom models and prices.
export default function Models({ machine }: PageProps) {
  const [view, setView] = useFilter<View>(
    "view",
    "list",
    views.map(([v]) => v),
  );
  const [segment, setSegment] = useFilter(
    "kind",
    "llm",
    segments.map(([k]) => k),
  );
  const [open, setOpen] = useState<ModelRow | null>(null),
    [priced, setPriced] = useState("");
  const list = useLoad(
    async () => ({ segment, rows: await machine.list<ModelRow>(`/models/list/${segment}`) }),
    [machine, segment],
  );
  const off = useLoad(
    async () => (await machine.get<{ disabled: Record<string, string[]> }>("/models/disabled")).disabled,
    [machine],
  );
  const connected = useLoad(
    async () => (await machine.list<ConnectionRow>("/providers")).some((c) => c.isActive),
    [machine],
  );
  const reload = async () => {
    await Promise.all([list.reload(), off.reload()]);
  };
  // The list of another kind is not shown while this one loads.
  const rows = { ...list, data: list.data?.segment === segment ? list.data.rows : null };
  const ids = (list.data?.rows ?? []).map((m) => m.id);
  return (
    <Page title="Models" intro="Models your clients can call.">
      {connected.data === false && (
        <Notice kind="warn">
          No account is connected. This is the built-in catalogue: none of these can be called yet.{" "}
          <a href={to(machine.id, "providers", "add")}>Add account</a>
        </Notice>
      )}
      <Tabs label="View" value={view} items={views} onPick={setView} />
      {view === "list" && (
        <ModelList
          machine={machine}
          list={rows}
          segments={segments}
          segment={segment}
          callable={connected.data === true}
          onSegment={setSegment}
          onOpen={setOpen}
          onChange={reload}
        />
      )}
      {view === "disabled" && <Disabled machine={machine} off={off} onChange={reload} />}
      {view === "aliases" && <Aliases machine={machine} models={ids} />}
      {view === "custom" && <Customs machine={machine} onChange={list.reload} />}
      {view === "prices" && <Prices machine={machine} model={priced} onChange={list.reload} />}
      {open && (
        <Detail
          machine={machine}
          m={open}
          segment={segment}
          callable={connected.data === true}
          onPrice={() => {
            setPriced(open.id);
            setOpen(null);
            setView("prices");
          }}
          onClose={() => setOpen(null)}
          onChange={reload}
        />
      )}
    </Page>
  );
}
