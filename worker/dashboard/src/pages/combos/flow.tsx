import type { Combo } from "../../api-types";
import { count } from "../../format";
import { Badge } from "../../ui";
import type { State } from "./members";
import { failures, goesOn } from "./policy";

// Of is what the picture shows of a combo.
export type Of = Pick<Combo, "name" | "models" | "strategy" | "weights" | "splitBy" | "on" | "unknown">;

// rules say which model is first.
const rules: Record<string, string> = {
  "": "The models are tried in this order.",
  "round-robin": "Each request starts with the next model.",
  affinity: "A session stays with one model.",
  weighted: "The first model is chosen by weight.",
  cheapest: "The cheapest model is first.",
  fastest: "The fastest model is first.",
  "least-busy": "The least busy model is first.",
};

const ruleOf = (c: Of) => {
  const { strategy = "" } = c;
  if (strategy === "weighted")
    return `The first model is chosen by weight, the same for ${c.splitBy === "key" ? "all requests of a key" : "a session"}.`;
  return rules[strategy] ?? rules[""];
};

// share returns the share of a member: "90%".
const share = (c: Of, m: string) => {
  const weight = (name: string) => c.weights?.[name] ?? 1;
  const all = c.models.reduce((sum, name) => sum + weight(name), 0);
  return `${Math.round((weight(m) / all) * 1000) / 10}%`;
};

// maxDepth is that of combos in combos, see pkg/machine/manage/combo.go.
const maxDepth = 4;

// Flow is a picture of how a request to a combo is routed: its members in order, those
// of inner combos inside, and what ends it.
export function Flow({ of, all, state }: { of: Of; all: Of[]; state: (member: string) => State | null }) {
  const names = (next: boolean) =>
    failures.filter(([name]) => goesOn(of.on ?? {}, name) === next).map(([, label]) => label.toLowerCase());
  const [onward, ends] = [names(true), names(false)];
  return (
    <div class="flow">
      <Chain of={of} all={all} state={state} depth={1} />
      <p class="small muted">
        {ruleOf(of)}
        {onward.length > 0 && of.models.length > 1 && ` Tries the next model after: ${onward.join(", ")}.`}
        {ends.length > 0 && ` Returns the error after: ${ends.join(", ")}.`}
      </p>
    </div>
  );
}

function Chain({
  of,
  all,
  state,
  depth,
}: {
  of: Of;
  all: Of[];
  state: (member: string) => State | null;
  depth: number;
}) {
  return (
    <ol aria-label={`Route of ${of.name || "the combo"}`}>
      {depth === 1 && (
        <li class="end" aria-hidden="true">
          Request
        </li>
      )}
      {of.models.map((m) => {
        const inner = depth < maxDepth ? all.find((c) => c.name === m) : undefined;
        const about = inner ? null : state(m);
        const wrong = about?.wrong || (of.unknown?.includes(m) ? "Not found" : "");
        return (
          <li key={m} class={wrong ? "member wrong" : "member"}>
            <span class="row tight wrap">
              <code>{m}</code>
              {of.strategy === "weighted" && <Badge kind="accent">{share(of, m)}</Badge>}
              {wrong ? (
                <Badge kind="bad">{wrong}</Badge>
              ) : (
                about && <small class="muted">{count(about.accounts, "account")}</small>
              )}
            </span>
            {inner && <Chain of={inner} all={all} state={state} depth={depth + 1} />}
          </li>
        );
      })}
      {depth === 1 && (
        <li class="end" aria-hidden="true">
          Error
        </li>
      )}
    </ol>
  );
}
