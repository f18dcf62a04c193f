// Inputs of a connection, for a new one and a stored one.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { address } from "../../connections";
import { Field } from "../../ui";

// Typed is the input of a form, by the names of the API's fields.
export type Typed = Record<string, string>;

// secretNames are the fields whose input is not remembered.
export const secretNames = new Set([
  "apiKey",
  "serviceAccount",
  "accessKeyId",
  "secretAccessKey",
  "sessionToken",
  "proxyUrl",
]);

interface Secret {
  field: string;
  label: string;
  long?: boolean;
}

// secretsOf returns the secrets that a provider accepts, by its authentication
// scheme; the first is the usual one.
function secretsOf(auth: string): Secret[] {
  switch (auth) {
    case "google":
      return [
        { field: "serviceAccount", label: "Service account key (JSON)", long: true },
        { field: "apiKey", label: "API key (instead of a key file)" },
      ];
    case "aws":
      return [
        { field: "apiKey", label: "API key (instead of an access key)" },
        { field: "accessKeyId", label: "Access key ID" },
        { field: "secretAccessKey", label: "Secret access key" },
        { field: "sessionToken", label: "Session token (temporary credentials only)" },
      ];
    default:
      return [{ field: "apiKey", label: "API key" }];
  }
}

// focus is a ref that focuses an input when it appears.
const focus = (input: HTMLElement | null) => input?.focus();

// Credential asks for the secrets of a connection. They are sent once and never
// shown again.
export function Credential({
  auth,
  typed,
  onType,
  required,
  optional,
  focused,
  hint,
}: {
  auth: string;
  typed: Typed;
  onType: (field: string, value: string) => void;
  required?: boolean;
  /** calls may go out without one */
  optional?: boolean;
  /** the first input has the focus */
  focused?: boolean;
  hint?: ComponentChildren;
}) {
  const secrets = secretsOf(auth);
  return (
    <>
      {secrets.map(({ field, label, long }, i) => (
        <Field key={field} label={optional ? `${label} (optional)` : label} hint={i === 0 ? hint : undefined}>
          {long ? (
            <textarea
              ref={focused && i === 0 ? focus : undefined}
              rows={5}
              spellcheck={false}
              autocomplete="off"
              value={typed[field] ?? ""}
              onInput={(e) => onType(field, e.currentTarget.value)}
            />
          ) : (
            <input
              ref={focused && i === 0 ? focus : undefined}
              type="password"
              autocomplete="off"
              required={required && secrets.length === 1}
              value={typed[field] ?? ""}
              onInput={(e) => onType(field, e.currentTarget.value)}
            />
          )}
        </Field>
      ))}
    </>
  );
}

// ProxyInput asks for the proxy of a connection that uses OAuth tokens. Its user
// and password are never shown again.
export function ProxyInput({ value, onType }: { value: string; onType: (value: string) => void }) {
  return (
    <Field
      label="HTTP proxy for OAuth requests (optional)"
      hint="http://user:password@host:port. Used only to sign in and to renew the sign-in."
    >
      <input
        inputMode="url"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        value={value}
        onInput={(e) => onType(e.currentTarget.value)}
      />
    </Field>
  );
}

// BaseUrlInput asks for a base URL. It shows the scheme that is added to an address
// without one.
export function BaseUrlInput({
  value,
  onText,
  required,
  focused,
  placeholder,
  hint,
}: {
  value: string;
  onText: (value: string) => void;
  required: boolean;
  focused?: boolean;
  placeholder?: string;
  hint: string;
}) {
  const saved = address(value);
  return (
    <Field
      label="Base URL"
      hint={
        <>
          {saved !== value.trim() && (
            <>
              Saved as <code>{saved}</code>.{" "}
            </>
          )}
          {hint}
        </>
      }
    >
      <input
        ref={focused ? focus : undefined}
        inputMode="url"
        autocapitalize="none"
        spellcheck={false}
        required={required}
        placeholder={placeholder}
        value={value}
        onInput={(e) => onText(e.currentTarget.value)}
      />
    </Field>
  );
}

// secretBody returns the fields of a connection that the input sets.
export function secretBody(auth: string, typed: Typed): Record<string, string> {
  const out: Record<string, string> = {};
  for (const { field } of secretsOf(auth)) if (typed[field]?.trim()) out[field] = typed[field].trim();
  return out;
}

// WeightInput asks for the weight of a connection.
export function WeightInput({ value, onText }: { value: string; onText: (value: string) => void }) {
  return (
    <Field label="Weight" hint="Traffic share (Weighted strategy only).">
      <input
        type="number"
        inputMode="numeric"
        min={1}
        max={1000}
        value={value}
        onInput={(e) => onText(e.currentTarget.value)}
      />
    </Field>
  );
}

// Advanced has the inputs that few users need, folded. It opens if one of them is
// invalid.
export function Advanced({ children }: { children: ComponentChildren }) {
  const ref = useRef<HTMLDetailsElement>(null);
  return (
    <details
      class="advanced"
      ref={ref}
      onInvalidCapture={() => {
        ref.current!.open = true;
      }}
    >
      <summary>Advanced</summary>
      <div class="stack">{children}</div>
    </details>
  );
}
