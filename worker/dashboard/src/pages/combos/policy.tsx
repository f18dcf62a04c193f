import type { Combo } from "../../api-types";
import { Field } from "../../ui";

// failures are the classes of failures of a member, with what holds by default.
export const failures = [
  ["limit", "Rate limit or no credit", "next"],
  ["unavailable", "Not available", "next"],
  ["context_length", "Request too long", "next"],
  ["model_gone", "Model does not exist", "next"],
  ["content_filter", "Content filtered", "as other refusals"],
  ["any_4xx", "Other refusals (4xx)", "stop"],
] as const;

const actions = { next: "try the next model", stop: "return the error", "as other refusals": "as other refusals" };

export type PolicyOf = NonNullable<Combo["on"]>;

// goesOn reports whether the next member is tried after a class of failures.
export function goesOn(on: PolicyOf, name: string): boolean {
  const [, , byDefault] = failures.find(([n]) => n === name)!;
  const action: string = on[name] ?? byDefault;
  return action === "as other refusals" ? goesOn(on, "any_4xx") : action === "next";
}

// Policy edits which failures of a member continue with the next one.
export function Policy({ on, onChange }: { on: PolicyOf; onChange: (on: PolicyOf) => void }) {
  const set = (name: string, value: string) => {
    const { [name]: _, ...others } = on;
    onChange(value ? { ...others, [name]: value as "next" | "stop" } : others);
  };
  return (
    <details open={Object.keys(on).length > 0}>
      <summary>When a model fails</summary>
      <div class="grid">
        {failures.map(([name, label, byDefault]) => (
          <Field key={name} label={label}>
            <select value={on[name] ?? ""} onChange={(e) => set(name, e.currentTarget.value)}>
              <option value="">Default: {actions[byDefault]}</option>
              <option value="next">Try the next model</option>
              <option value="stop">Return the error</option>
            </select>
          </Field>
        ))}
      </div>
    </details>
  );
}
