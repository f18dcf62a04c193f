// roleCan says what the roles may do. The sign-in page loads roles.ts, and not this file.
import type { Role } from "./roles";

export const roleCan: Record<Role, string> = {
  member: "create keys within limits, and see only their usage",
  viewer: "see everything except stored prompts and answers, and people",
  editor: "change everything except people, stored prompts and answers, exports and notifications",
  owner: "do everything on this machine",
};
