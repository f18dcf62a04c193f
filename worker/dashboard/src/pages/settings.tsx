import { useState } from "preact/hooks";
import type { PageProps } from "../page";
import { Page } from "../layout";
import { Audit } from "./settings/audit";
import { Backup } from "./settings/backup";
import { Routing } from "./settings/routing";

// Settings shows the settings of a machine, its backup and its audit log.
export default function Settings({ machine, machineName }: PageProps) {
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
      <Backup machine={machine} onImport={() => setImports(imports + 1)} />
      <Audit key={imports} machine={machine} />
    </Page>
  );
}
