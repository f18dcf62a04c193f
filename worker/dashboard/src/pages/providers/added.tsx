import { useEffect, useState } from "preact/hooks";
import { errorText, type Machine } from "../../api";
import { Dialog } from "../../dialog";
import { count } from "../../format";
import { useAction } from "../../hooks";
import { to } from "../../route";
import { toast } from "../../toast";
import { Badge, Button, ErrorBox } from "../../ui";
import { isOk, isUntested, type Outcome, outcomeText, savedText, testConnection } from "./test";

interface Check {
  test: Outcome;
  models: string;
}

// testSaved tests an account that was saved. It returns what to announce, and throws what has failed.
export async function testSaved(machine: Machine, id: string, name: string): Promise<string> {
  const outcome = await testConnection(machine, id),
    text = `${savedText(name, outcome)}.`;
  if (isOk(outcome) || isUntested(outcome)) return text;
  throw new Error(`${text} ${outcomeText(outcome)}`);
}

// Added tests a new connection and shows the result, with its list of models.
export function Added({
  machine,
  id,
  name,
  onClose,
}: {
  machine: Machine;
  id: string;
  /** that was given, else the provider's */
  name: string;
  onClose: () => void;
}) {
  const [check, setCheck] = useState<Check | null>(null);
  const remove = useAction();
  const run = async () => {
    setCheck(null);
    const [models, test] = await Promise.all([
      machine
        .get<{ data: unknown[]; source: string }>(`/providers/${id}/models`)
        .then(
          (m) => (m.source === "upstream" ? `${count(m.data.length, "model")} available.` : "No model list received."),
          errorText,
        ),
      testConnection(machine, id),
    ]);
    setCheck({ models, test });
  };
  useEffect(() => {
    void run();
  }, []);
  const ok = !!check && isOk(check.test),
    untested = !!check && isUntested(check.test);
  return (
    <Dialog title={check ? savedText(name, check.test) : `Testing ${name}`} onClose={onClose}>
      <div class="stack" role="status">
        {!check ? (
          <p class="row tight muted">
            <span class="spinner" />
            Testing…
          </p>
        ) : (
          <>
            <p class="row tight">
              <Badge kind={ok ? "good" : untested ? "" : "bad"}>
                {ok ? "Works" : untested ? "Not tested" : "Test failed"}
              </Badge>
              <span>{outcomeText(check.test)}</span>
            </p>
            <p class="muted">{check.models}</p>
          </>
        )}
      </div>
      <div class="row wrap">
        {ok && (
          <a class="button main" href={to(machine.id, "playground")}>
            Open the playground
          </a>
        )}
        <a class={ok || !check ? "button" : "button main"} href={to(machine.id, "providers", id)}>
          {ok || !check ? "Choose models" : "Edit"}
        </a>
        <a class="button" href={to(machine.id, "providers")}>
          All providers
        </a>
        {check && !ok && <Button onClick={() => void run()}>Test again</Button>}
        <Button
          kind="quiet"
          busy={remove.busy}
          onClick={() =>
            void remove.run(async () => {
              await machine.del(`/providers/${id}`);
              toast("Account deleted.");
              onClose();
            })
          }
        >
          Delete
        </Button>
      </div>
      {remove.error && <ErrorBox>{remove.error}</ErrorBox>}
    </Dialog>
  );
}
