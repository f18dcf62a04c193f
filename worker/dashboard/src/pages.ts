import type { PageEntry } from "./page";
import type { Role } from "./roles";

// pages are the pages of a machine, in the order of the navigation. Each is
// loaded when it is first opened. To add a page: a file in pages/, a row here,
// an icon in icons.tsx and a test in test/dashboard; pages.test.mjs reports
// what is missing. The first is where a machine opens.
export const pages: PageEntry[] = [
  { path: "overview", title: "Overview", icon: "overview", load: () => import("./pages/overview") },
  {
    path: "requests",
    title: "Requests",
    icon: "requests",
    needs: "GET /api/requests",
    role: "member",
    load: () => import("./pages/requests"),
  },
  { path: "usage", title: "Usage", icon: "usage", role: "member", load: () => import("./pages/usage") },
  {
    path: "providers",
    title: "Providers",
    icon: "providers",
    first: true,
    rows: ["/providers"],
    load: () => import("./pages/providers"),
  },
  {
    path: "models",
    title: "Models",
    icon: "models",
    rows: ["/models/custom", "/models/disabled", "/models/alias", "/settings"],
    load: () => import("./pages/models"),
  },
  { path: "combos", title: "Combos", icon: "combos", rows: ["/combos"], load: () => import("./pages/combos") },
  {
    path: "keys",
    title: "Keys",
    icon: "keys",
    first: true,
    role: "member",
    rows: ["/keys"],
    load: () => import("./pages/keys"),
  },
  {
    path: "budgets",
    title: "Budgets",
    icon: "budgets",
    needs: "GET /api/budgets",
    rows: ["/budgets"],
    load: () => import("./pages/budgets"),
  },
  {
    path: "connect",
    title: "Connect a tool",
    icon: "connect",
    role: "member",
    load: () => import("./pages/connect"),
  },
  {
    path: "people",
    title: "People",
    icon: "people",
    needs: "GET /api/people",
    role: "owner",
    rows: ["/people"],
    load: () => import("./pages/people"),
  },
  {
    path: "playground",
    title: "Playground",
    icon: "playground",
    first: true,
    role: "editor",
    load: () => import("./pages/playground"),
  },
  { path: "explain", title: "Explain", icon: "explain", load: () => import("./pages/explain") },
  {
    path: "settings",
    title: "Settings",
    icon: "settings",
    rows: ["/settings", "/destinations"],
    load: () => import("./pages/settings"),
  },
];

// home is the path of the first page.
export const home = pages[0].path;

// homeOf returns the page where a machine opens for a role.
export const homeOf = (role?: Role) => (role === "member" ? "connect" : home);
