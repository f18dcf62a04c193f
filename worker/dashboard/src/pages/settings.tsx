import type { PageProps } from "../page";
import { Tabs } from "../tabs";
import { Page } from "../layout";
import { Lazy } from "../lazy";
import { go, to } from "../route";
import { About } from "./settings/about";
import { Audit } from "./settings/audit";
import { Backup } from "./settings/backup";
import { Captures } from "./settings/captures";
import { Health } from "./settings/health";
import { Routing } from "./settings/routing";
import { sections } from "./settings/sections";
import { Asked } from "./settings/setting";

const destinations = () => import("./settings/destinations");

// Settings shows one section of the settings of a machine, which the address names.
export default function Settings({ machine, machineName, session, args: [asked, part] }: PageProps) {
  const offered = sections.filter((s) => machine.may(s.role ?? "viewer"));
  const { id } = offered.find((s) => s.id === asked) ?? offered[0];
  return (
    <Page
      title="Settings"
      intro={
        <>
          Machine{" "}
          {machineName ? (
            <>
              <strong>{machineName}</strong> (<code>{machine.id}</code>)
            </>
          ) : (
            <code>{machine.id}</code>
          )}
        </>
      }
    >
      <Tabs
        label="Section"
        value={id}
        items={offered.map((s) => [s.id, s.title])}
        onPick={(next) => go(to(machine.id, "settings", next))}
      />
      <Asked.Provider value={part}>
        {id === "routing" && <Routing machine={machine} />}
        {(id === "notifications" || id === "exports") && (
          <Lazy key={id} load={destinations} props={{ machine, id, asked: part }} what={id} />
        )}
        {id === "captures" && <Captures machine={machine} />}
        {id === "health" && <Health machine={machine} />}
        {id === "health" && <About machine={machine} operator={session.operator} />}
        {id === "backup" && <Backup machine={machine} operator={session.operator} />}
        {id === "audit" && <Audit machine={machine} />}
      </Asked.Provider>
    </Page>
  );
}
