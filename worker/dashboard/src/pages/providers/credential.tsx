import { Field } from "../../ui";

// What is typed of a credential, by the names of the fields that set it.
export type Typed = Record<string, string>;

// secretNames are the fields that are never remembered.
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

// secretsOf lists what a provider can be given, by the scheme of the provider
// table; the first is the usual one.
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

// Credential asks for the secrets of a connection. They are sent once and
// never shown again.
export function Credential({
  auth,
  typed,
  onType,
  required,
  hint,
}: {
  auth: string;
  typed: Typed;
  onType: (field: string, value: string) => void;
  required?: boolean;
  hint?: string;
}) {
  const secrets = secretsOf(auth);
  return (
    <>
      {secrets.map(({ field, label, long }, i) => (
        <Field key={field} label={label} hint={i === 0 ? hint : undefined}>
          {long ? (
            <textarea
              rows={5}
              spellcheck={false}
              autocomplete="off"
              value={typed[field] ?? ""}
              onInput={(e) => onType(field, e.currentTarget.value)}
            />
          ) : (
            <input
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

// ProxyField asks for the proxy of a connection that gets tokens. Its user and
// password are never shown again.
export function ProxyField({ value, onType }: { value: string; onType: (value: string) => void }) {
  return (
    <Field
      label="Proxy for tokens (optional)"
      hint="http://user:password@host:port. Tokens are asked for through it alone."
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

// secretBody gives the fields of a connection that set what was typed.
export function secretBody(auth: string, typed: Typed): Record<string, string> {
  const out: Record<string, string> = {};
  for (const { field } of secretsOf(auth)) if (typed[field]?.trim()) out[field] = typed[field].trim();
  return out;
}
