import { Field } from "../../ui";
import { Button } from "../../ui";
import { type Fault, noOptions, type Options } from "./body";

const toolExample = `[
  {
    "type": "function",
    "function": {
      "name": "get_weather",
      "description": "Returns the weather of a city",
      "parameters": {
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"]
      }
    }
  }
]`;
const schemaExample = `{
  "type": "object",
  "properties": { "city": { "type": "string" }, "degrees": { "type": "number" } },
  "required": ["city", "degrees"],
  "additionalProperties": false
}`;

// Parameters is the form of the options of a chat.
export function Parameters({
  value,
  faults,
  onChange,
}: {
  value: Options;
  faults: Fault[];
  onChange: (o: Options) => void;
}) {
  const set = Object.values(value).filter((v) => v.trim()).length;
  const put = (part: Partial<Options>) => onChange({ ...value, ...part });
  const of = (field: keyof Options) => ({
    value: value[field],
    "aria-invalid": faults.some((f) => f.field === field) || undefined,
    onInput: (e: { currentTarget: { value: string } }) => put({ [field]: e.currentTarget.value }),
  });
  const hint = (field: keyof Options, text?: string) => faults.find((f) => f.field === field)?.text ?? text;
  return (
    <details>
      <summary>Parameters{set > 0 && ` (${set} set)`}</summary>
      <div class="grid">
        <div class="full">
          <Field label="System prompt">
            <textarea class="prose" dir="auto" rows={2} {...of("system")} />
          </Field>
        </div>
        <Field label="Max output tokens" hint={hint("maxTokens")}>
          <input type="number" min={1} placeholder="Model default" {...of("maxTokens")} />
        </Field>
        <Field label="Temperature" hint={hint("temperature")}>
          <input type="number" min={0} max={2} step={0.1} placeholder="Model default" {...of("temperature")} />
        </Field>
        <Field label="Top P" hint={hint("topP")}>
          <input type="number" min={0} max={1} step={0.05} placeholder="Model default" {...of("topP")} />
        </Field>
        <Field label="Seed" hint={hint("seed")}>
          <input type="number" placeholder="Random" {...of("seed")} />
        </Field>
        <Field label="Reasoning effort">
          <select {...of("effort")}>
            <option value="">Model default</option>
            {["none", "minimal", "low", "medium", "high"].map((e) => (
              <option key={e}>{e}</option>
            ))}
          </select>
        </Field>
        <Field label="Response format">
          <select {...of("format")}>
            <option value="">Text</option>
            <option value="json_object">JSON</option>
            <option value="json_schema">JSON schema</option>
          </select>
        </Field>
        <Field label="Stop sequences" hint="One per line.">
          <textarea rows={2} spellcheck={false} {...of("stop")} />
        </Field>
        <div class="full stack">
          {value.format === "json_schema" && (
            <>
              <Field label="JSON schema" hint={hint("schema")}>
                <textarea rows={6} spellcheck={false} {...of("schema")} />
              </Field>
              {!value.schema && <Button onClick={() => put({ schema: schemaExample })}>Insert example schema</Button>}
            </>
          )}
          <Field label="Tools" hint={hint("tools", "A JSON array of functions the model may call.")}>
            <textarea rows={value.tools ? 8 : 2} spellcheck={false} {...of("tools")} />
          </Field>
          {value.tools ? (
            <Field label="Tool choice">
              <select {...of("toolChoice")}>
                <option value="">auto</option>
                <option value="required">required</option>
                <option value="none">none</option>
              </select>
            </Field>
          ) : (
            <Button onClick={() => put({ tools: toolExample })}>Insert example tool</Button>
          )}
          {set > 0 && <Button onClick={() => onChange(noOptions)}>Reset parameters</Button>}
        </div>
      </div>
    </details>
  );
}
