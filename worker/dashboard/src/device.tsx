import { useEffect, useState } from "preact/hooks";
import { call } from "./api";
import type { Session } from "./api-types";
import { useAction } from "./hooks";
import { Page, Section } from "./layout";
import { useFilter } from "./route";
import { Time } from "./time";
import { Button, ErrorBox, Field } from "./ui";

interface Device {
  name: string;
  address?: string;
  createdAt: number;
}

// DevicePage approves the sign-in of a command line, #/device: it shows who asks, and the key
// is of the machine that is chosen.
export default function DevicePage({
  session,
  machines,
}: {
  session: Session;
  machines: { machineId: string; name?: string }[];
}) {
  const [code, setCode] = useFilter("code", "");
  const [chosen, choose] = useState("");
  const [device, setDevice] = useState<Device | null>(null);
  useEffect(() => setDevice(null), [code]); // what is shown is what is decided
  const [done, setDone] = useState("");
  const act = useAction();
  const machineId = session.machineId ?? (chosen || (machines.length === 1 ? machines[0].machineId : ""));
  const at = `/${machineId}/api/device/${encodeURIComponent(code.trim())}`;
  const find = () => act.run(async () => setDevice(await call<Device>("GET", at)));
  const decide = (approve: boolean) =>
    act.run(async () => {
      await call("POST", at, { approve });
      setDevice(null);
      setDone(approve ? "Approved. Return to the terminal." : "Denied.");
    });
  return (
    <Page
      title="Approve a command-line sign-in"
      intro="For the command weir login, which you have started in a terminal."
    >
      <Section title={device ? "Compare the code" : "Code"}>
        {act.error && <ErrorBox>{act.error}</ErrorBox>}
        {done ? (
          <p role="status">{done}</p>
        ) : device ? (
          <>
            <p>
              <strong>{device.name}</strong> wants a key that can manage the machine for 30 days
              {device.address && <>, from {device.address}</>}. It asked <Time at={device.createdAt} />.
            </p>
            <p>
              Approve it only if your own terminal shows the code{" "}
              <strong class="code">{code.trim().toUpperCase()}</strong>. Never approve a code that someone sent you.
            </p>
            <div class="row">
              <Button kind="main" busy={act.busy} onClick={() => void decide(true)}>
                Approve
              </Button>
              <Button busy={act.busy} onClick={() => void decide(false)}>
                Deny
              </Button>
            </div>
          </>
        ) : (
          <form
            onSubmit={(e) => {
              e.preventDefault();
              void find();
            }}
          >
            {!session.machineId && machines.length !== 1 && (
              <Field label="Machine of the key">
                <select required value={chosen} onChange={(e) => choose(e.currentTarget.value)}>
                  <option value="">Choose a machine</option>
                  {machines.map((m) => (
                    <option key={m.machineId} value={m.machineId}>
                      {m.name || m.machineId}
                    </option>
                  ))}
                </select>
              </Field>
            )}
            <Field label="Code" hint="Eight letters, as the terminal shows them.">
              <input
                required
                autocomplete="off"
                spellcheck={false}
                value={code}
                onInput={(e) => setCode(e.currentTarget.value)}
              />
            </Field>
            <Button kind="main" type="submit" busy={act.busy}>
              Continue
            </Button>
          </form>
        )}
      </Section>
    </Page>
  );
}
