import { useState } from "preact/hooks";
import { errorText, type Machine } from "../../api";
import type { TestResult } from "../../api-types";
import { testText } from "../../connections";
import { useAction } from "../../hooks";

// Outcome is the result of a connection test, or the error of the call.
export type Outcome = TestResult | string;

// testConnection tests a connection.
export const testConnection = (machine: Machine, id: string): Promise<Outcome> =>
  machine.post<TestResult>(`/providers/${id}/test`, {}).catch(errorText);

// isOk reports whether a test succeeded; isUntested, whether the provider cannot be tested.
export const isOk = (outcome: Outcome) => typeof outcome === "object" && outcome.ok;
export const isUntested = (outcome: Outcome) => typeof outcome === "object" && outcome.error === "unsupported";

export const outcomeText = (outcome: Outcome) => (typeof outcome === "string" ? outcome : testText(outcome));

// savedText says what has become of an account that was saved and tested.
export const savedText = (name: string, outcome: Outcome) =>
  isOk(outcome)
    ? `${name} is connected`
    : isUntested(outcome)
      ? `${name} was saved`
      : `${name} was saved, but the test failed`;

// useTest tests a connection when run is called, and reloads it with onChange.
export function useTest(machine: Machine, id: string, onChange: () => Promise<void>) {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { busy, run } = useAction();
  return {
    busy,
    outcome,
    run: () =>
      run(async () => {
        setOutcome(null);
        setOutcome(await testConnection(machine, id));
        await onChange();
      }),
  };
}

// TestText announces the outcome of a test.
export function TestText({ outcome }: { outcome: Outcome | null }) {
  return (
    <p class={outcome && isOk(outcome) ? "small good" : "small bad"} role="status">
      {outcome && outcomeText(outcome)}
    </p>
  );
}
