import { useState } from "preact/hooks";
import type { ConnectionRow, ModelRow } from "../api-types";
import { useLoad } from "../hooks";
import { kindNames, modelKinds, segmentOf } from "../kinds";
import type { PageProps } from "../page";
import { to, useFilter } from "../route";
import { Tabs } from "../forms";
import { Page } from "../layout";
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

// Models is the list of models as the machine's clients see it, with disabled
// models, aliases and custom models.
export default function Models({ machine }: PageProps) {
  const [segment, setSegment] = useFilter(
    "kind",
    "llm",
    segments.map(([k]) => k),
  );
  const [open, setOpen] = useState<ModelRow | null>(null);
  const list = useLoad(() => machine.list<ModelRow>(`/models/list/${segment}`), [machine, segment]);
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
  return (
    <Page title="Models" intro="Models your clients can call.">
      {connected.data === false && (
        <Notice kind="warn">
          No provider is connected. This is the built-in catalog: none of these can be called yet.{" "}
          <a href={to(machine.id, "providers", "add")}>Add provider</a>
        </Notice>
      )}
      <Tabs label="Kind" value={segment} items={segments} onPick={setSegment} />
      <ModelList key={segment} machine={machine} list={list} onOpen={setOpen} onChange={reload} />
      <Disabled machine={machine} off={off} onChange={reload} />
      <Aliases machine={machine} models={(list.data ?? []).map((m) => m.id)} />
      <Prices machine={machine} models={(list.data ?? []).map((m) => m.id)} />
      <Customs machine={machine} onChange={list.reload} />
      {open && <Detail machine={machine} m={open} segment={segment} onClose={() => setOpen(null)} />}
    </Page>
  );
}
