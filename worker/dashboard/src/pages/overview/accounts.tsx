import { useState } from "preact/hooks";
import { type Machine, sentence } from "../../api";
import type { ConnectionRow, ProviderRow, Quota } from "../../api-types";
import { now } from "../../clock";
import { providerName } from "../../connections";
import { count, percent } from "../../format";
import { Section } from "../../layout";
import { Lazy } from "../../lazy";
import { to } from "../../route";
import { Time } from "../../time";
import { toast } from "../../toast";
import { Badge, Button, Cut } from "../../ui";
import { tightest } from "../providers/gauge";
import { statusOf } from "../providers/health";
import { TestText, useTest } from "../providers/test";

const repair = () => import("./repair");

const lowQuota = 0.1; // share that is left of a limit
const expiringMs = 24 * 3_600_000;

type Fix = "signin" | "key" | "test" | "another";

export interface Need {
  c: ConnectionRow;
  kind: "" | "good" | "warn" | "bad";
  badge: string;
  text: string;
  fix: Fix;
}

// needOf returns what an account needs from its owner, or null. Limits end by
// themselves, and a disabled account is meant to be.
function needOf(c: ConnectionRow, quota: Quota | undefined, now: number): Need | null {
  if (!c.isActive) return null;
  const [kind, badge] = statusOf(c, now);
  const need = (fix: Fix, text = c.lastError ? sentence(c.lastError) : ""): Need => ({ c, kind, badge, text, fix });
  const oauth = c.authType === "oauth";
  if (c.status === "needs_reauth") return need("signin");
  if (c.status === "needs_credential") return need(oauth ? "signin" : "key");
  switch (c.health) {
    case "key_refused":
    case "key_unavailable":
      return need(oauth ? "signin" : "key");
    case "out_of_credit":
      return need("test", "Add credit at the provider, then test the account.");
    case "ready":
    case "untested":
    case "limited":
      break;
    default:
      return need("test");
  }
  if (oauth && !c.secrets.includes("refreshToken") && c.expiresAt && c.expiresAt < now + expiringMs)
    return {
      ...need("signin", "The sign-in can’t be renewed automatically."),
      kind: "warn",
      badge: "Sign-in expires soon",
    };
  const window = tightest(quota);
  if (window && window.left < lowQuota && (window.resetsAt ?? Infinity) > now)
    return {
      ...need("another", `${percent(window.left)} of a limit is left.`),
      kind: "warn",
      badge: "Limit almost used up",
    };
  return null;
}

// fixQuery returns the query of an account's address that focuses what has to be changed.
export const fixQuery = ({ c, fix }: Need) =>
  fix === "key" ? "fix=key" : c.health === "unreachable" ? "fix=url" : undefined;

// needsOf returns what accounts need from their owner.
export function needsOf({ conns, quotas }: { conns: ConnectionRow[]; quotas: Quota[] }): Need[] {
  const quotaOf = (c: ConnectionRow) => quotas.find((q) => q.connectionId === c.id);
  return conns.flatMap((c) => needOf(c, quotaOf(c), now()) ?? []);
}

// Accounts lists the accounts that need their owner, each with what solves it.
export function Accounts({
  machine,
  conns,
  catalog,
  quotas,
  onChange,
}: {
  machine: Machine;
  conns: ConnectionRow[];
  catalog: ProviderRow[];
  quotas: Quota[];
  onChange: () => Promise<void>;
}) {
  const needs = needsOf({ conns, quotas });
  const used = conns.filter((c) => c.isActive),
    active = used.length;
  const untested = used.filter((c) => !c.lastSuccessAt).length,
    lastAnswer = Math.max(0, ...used.map((c) => c.lastSuccessAt ?? 0));
  // A dialog stays open when the account needs nothing any more.
  const [fixing, setFixing] = useState<Need | null>(null);
  const nameOf = (c: ConnectionRow) => c.name || providerName(c.provider, catalog);
  const close = () => {
    setFixing(null);
    void onChange();
  };
  return (
    <Section
      title="Accounts"
      intro={
        needs.length === 0 && (
          <>
            {untested > 0
              ? `${untested} of ${count(active, "account")} ${untested === 1 ? "has" : "have"} not answered yet.`
              : `${count(active, "account")} answered last time.`}
            {active < conns.length && ` ${conns.length - active} paused.`}
            {lastAnswer > 0 && (
              <>
                {" "}
                Last answer: <Time at={lastAnswer} />.
              </>
            )}
          </>
        )
      }
      actions={<a href={to(machine.id, "providers")}>All accounts</a>}
    >
      {needs.length > 0 && (
        <ul class="plain" aria-label="Accounts that need your attention">
          {needs.map((n) => (
            <li key={n.c.id}>
              <Account
                machine={machine}
                need={n}
                provider={catalog.find((p) => p.id === n.c.provider)}
                name={nameOf(n.c)}
                onFix={() => setFixing(n)}
                onChange={onChange}
              />
            </li>
          ))}
        </ul>
      )}
      {fixing && (
        <Lazy
          load={repair}
          what="form"
          props={{
            machine,
            need: fixing,
            provider: catalog.find((p) => p.id === fixing.c.provider),
            name: nameOf(fixing.c),
            onDone: (message: string) => {
              toast(message);
              close();
            },
            onClose: close,
          }}
        />
      )}
    </Section>
  );
}

function Account({
  machine,
  need: { c, kind, badge, text, fix },
  provider,
  name,
  onFix,
  onChange,
}: {
  machine: Machine;
  need: Need;
  provider?: ProviderRow;
  name: string;
  onFix: () => void;
  onChange: () => Promise<void>;
}) {
  const test = useTest(machine, c.id, onChange);
  const own = to(machine.id, "providers", c.id);
  const label = fix === "signin" ? "Sign in again" : c.hasKey ? "Replace key" : "Add credentials";
  return (
    <div class="conn">
      <div>
        <p class="row tight wrap">
          <strong>
            <a href={own}>
              <Cut>{name}</Cut>
            </a>
          </strong>
          <Badge kind={kind}>{badge}</Badge>
          {c.health !== "ready" && c.healthSince && (
            <small class="muted">
              since <Time at={c.healthSince} />
            </small>
          )}
        </p>
        {text && (
          <p class="small">
            <bdi>{text}</bdi>
          </p>
        )}
        <TestText outcome={test.outcome} />
      </div>
      {fix === "test" ? (
        <Button busy={test.busy} aria-label={`Test ${name}`} onClick={() => void test.run()}>
          Test
        </Button>
      ) : fix === "another" ? (
        <a class="button" href={`${to(machine.id, "providers", "add")}?q=${encodeURIComponent(provider?.name ?? "")}`}>
          Add another account
        </a>
      ) : fix === "signin" && !provider?.connect.length ? (
        <a class="button main" href={own}>
          {label}
        </a>
      ) : (
        <Button kind="main" aria-label={`${label}: ${name}`} onClick={onFix}>
          {label}
        </Button>
      )}
    </div>
  );
}
