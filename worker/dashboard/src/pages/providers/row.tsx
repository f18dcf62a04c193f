import "./row.css";
import type { Machine } from "../../api";
import type { ConnectionRow, Quota, Timelines } from "../../api-types";
import { keyText } from "../../connections";
import { count, duration } from "../../format";
import { useAction } from "../../hooks";
import { to } from "../../route";
import { Switch } from "../../forms";
import { Strip } from "../../timeline";
import { Badge, Button, Cut, ErrorBox } from "../../ui";
import { LastError, Since, Used } from "./facts";
import { Gauge, tightest } from "./gauge";
import { hasFailed, statusOf } from "./health";
import { TestText, useTest } from "./test";

// Row is a connection in the list: its status, its switch and its test.
export function Row({
  machine,
  c,
  quota,
  health,
  now,
  provider,
  many,
  onChange,
}: {
  machine: Machine;
  c: ConnectionRow;
  quota?: Quota;
  /** of the accounts in the last day, once they are loaded */
  health: Timelines | null;
  now: number;
  provider: string;
  /** of a long list, whose rows are drawn when they are seen */
  many: boolean;
  onChange: () => Promise<void>;
}) {
  const test = useTest(machine, c.id, onChange),
    toggle = useAction();
  const label = c.name || provider;
  const wait = (c.cooldownUntil ?? 0) - now;
  const [kind, text] = statusOf(c, now);
  const window = tightest(quota);
  const line = health?.data.find((l) => l.connectionId === c.id);
  const selected = c.providerSpecificData.enabledModels;
  const setActive = (isActive: boolean) =>
    toggle.run(async () => {
      await machine.put(`/providers/${c.id}`, { isActive });
      await onChange();
    });
  return (
    <div class={many ? "conn many" : "conn"}>
      <div>
        <h3 class="row tight">
          <a href={to(machine.id, "providers", c.id)}>
            <Cut>{label}</Cut>
          </a>{" "}
          <Badge kind={kind}>{text}</Badge>
          {wait > 0 && <small class="muted desk">retry in {duration(wait)}</small>}
        </h3>
        <p class={`muted small facts one ${hasFailed(c) ? "desk" : ""}`}>
          <Used c={c} />
          <Since c={c} />
        </p>
        <p class="muted small one desk">
          {keyText(c)}
          {c.providerSpecificData.prefix && (
            <>
              {" "}
              ·{" "}
              <code>
                <Cut>{`${c.providerSpecificData.prefix}/`}</Cut>
              </code>
            </>
          )}
          {selected && ` · ${count(selected.length, "model")} selected`}
        </p>
        {health && line && (
          <div class="row tight desk">
            <Strip all={health} line={line} label={label} />
            <small class="muted when" aria-hidden="true">
              Last {count(health.steps, "hour")}
            </small>
          </div>
        )}
        {window && (
          <p class="desk">
            <Gauge w={window} now={now} />
          </p>
        )}
        <LastError c={c} />
        <TestText outcome={test.outcome} />
        {toggle.error && <ErrorBox>{toggle.error}</ErrorBox>}
      </div>
      <div class="row">
        <Switch
          on={c.isActive}
          busy={toggle.busy}
          changes={`/providers/${c.id}`}
          label={`Enable ${label}`}
          onTurn={(on) => void setActive(on)}
        />
        {(c.status.startsWith("needs_") || ["key_refused", "key_unavailable"].includes(c.health)) && (
          <a class="button main" href={`${to(machine.id, "providers", c.id)}?fix=key`}>
            {c.authType === "oauth" ? "Sign in again" : c.hasKey ? "Replace key" : "Add credentials"}
          </a>
        )}
        <a class="button" aria-label={`Models and details of ${label}`} href={to(machine.id, "providers", c.id)}>
          Models
        </a>
        <Button busy={test.busy} aria-label={`Test ${label}`} onClick={() => void test.run()}>
          Test
        </Button>
      </div>
    </div>
  );
}
