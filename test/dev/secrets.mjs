// The worker's secrets: their names, random values, and what the platform accepts.
import { randomBytes } from "node:crypto";

export const names = ["ADMIN_TOKEN", "API_KEY_SECRET", "CREDENTIALS_KEY"];

const maxLists = 16; // MaxOAuthLists in pkg/gateway/config.go
const lists = ["OAUTH_PROVIDERS", ...Array.from({ length: maxLists - 1 }, (_, i) => `OAUTH_PROVIDERS_${i + 2}`)];

// optional are the secrets that are uploaded if the environment has them.
export const optional = [...lists, "PROXY_URL", "PRICES_URL", "PRICES_KEY"];

const minSecret = 32; // bytes
const maxSecret = 5000; // bytes of a secret or variable on the platform, 5 KB

// random returns 32 random bytes in hex for each name.
export function random(of) {
  return Object.fromEntries(of.map((name) => [name, randomBytes(32).toString("hex")]));
}

// refusal returns why a secret of the environment cannot be uploaded, or "".
export function refusal(env) {
  for (const name of names)
    if (env[name] && Buffer.byteLength(env[name].trim()) < minSecret)
      return `${name} has ${Buffer.byteLength(env[name].trim())} bytes, and at least ${minSecret} are needed; openssl rand -hex 32 prints a good one`;
  const short = (env.CREDENTIALS_KEY ?? "").split(",").findIndex((key) => Buffer.byteLength(key.trim()) < minSecret);
  if (env.CREDENTIALS_KEY && short >= 0)
    return `CREDENTIALS_KEY: key ${short + 1} of its list has less than ${minSecret} bytes; separate keys by single commas, the new one first`;
  if (env.PROXY_URL && !/^http:\/\/([^@/\s]*@)?(\[[0-9a-f:]+\]|[^:@/\s]+):\d{1,5}\/?$/i.test(env.PROXY_URL.trim()))
    return "PROXY_URL must be written http://host:port or http://user:password@host:port";
  for (const name of [...names, ...optional]) {
    const size = Buffer.byteLength(env[name] ?? "");
    if (size > maxSecret)
      return `${name} has ${size} bytes, and the platform's limit is 5 KB (${maxSecret} bytes) for each secret${
        lists.includes(name)
          ? `; move rows of the array to another of OAUTH_PROVIDERS_2 to _${maxLists}`
          : "; shorten it"
      }`;
  }
  for (const name of lists)
    if (env[name]) {
      let rows = null;
      try {
        rows = JSON.parse(env[name]);
      } catch {
        // the text is in no message: it has secrets
      }
      if (!Array.isArray(rows)) return `${name} is not a JSON array; docs/connections.md has its form`;
    }
  const further = Object.keys(env).find(
    (name) => /^OAUTH_PROVIDERS_/.test(name) && !lists.includes(name) && !name.endsWith("_FILE"),
  );
  if (further) return `${further} would not be read; weir reads OAUTH_PROVIDERS and OAUTH_PROVIDERS_2 to _${maxLists}`;
  return "";
}
