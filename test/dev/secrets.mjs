// The worker's secrets: their names, and random values for them.
import { randomBytes } from "node:crypto";

export const names = ["ADMIN_TOKEN", "API_KEY_SECRET", "CREDENTIALS_KEY"];

// random returns 32 random bytes in hex for each name.
export function random(of) {
  return Object.fromEntries(of.map((name) => [name, randomBytes(32).toString("hex")]));
}
