import { useState } from "preact/hooks";
import type { PageProps } from "../page";
import { Page } from "../layout";
import { Lazy } from "../lazy";
import { About } from "./settings/about";
import { Audit } from "./settings/audit";
import { Backup } from "./settings/backup";
import { Captures } from "./settings/captures";
import { Health } from "./settings/health";
import { Routing } from "./settings/routing";

const destinations = () => import("./settings/destinations");

// Settings shows the settings of a machine, where it sends what happens, its backup, its audit log and the health of
// the gateway.
export default function Settings({ machine, machineName, session, has, args: [asked] }: PageProps) {
  const [imports, setImports] = useState(0); // each one reloads the sections
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
      <Routing key={imports} machine={machine} />
      {has("GET /api/destinations") && <Lazy load={destinations} props={{ machine, asked }} what="notifications" />}
      {machine.may("owner") && <Captures machine={machine} onChange={() => setImports(imports + 1)} />}
      <Health key={imports} machine={machine} />
      {machine.may("owner") && (
        <Backup machine={machine} operator={session.operator} onImport={() => setImports(imports + 1)} />
      )}
      <Audit key={imports} machine={machine} />
      <About machine={machine} operator={session.operator} />
    </Page>
  );
}
