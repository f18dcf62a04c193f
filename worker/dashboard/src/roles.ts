// Roles of people on a machine.
import type { Session } from "./api-types";

// roles are in their order: each includes those before it, but a member's own keys.
export const roles = ["member", "viewer", "editor", "owner"] as const;

export type Role = (typeof roles)[number];

export const atLeast = (role: Role, least: Role) => roles.indexOf(role) >= roles.indexOf(least);

// roleOn returns the role of the session on a machine. The operator and a management key
// have no limits.
export const roleOn = (s: Session, machineId: string): Role | undefined =>
  s.personId ? (s.roles?.[machineId] ?? s.roles?.["*"]) : "owner";

export const roleNames: Record<Role, string> = {
  member: "Member",
  viewer: "Viewer",
  editor: "Editor",
  owner: "Owner",
};
