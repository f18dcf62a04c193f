import type { ComponentType } from "preact";
import type { Machine } from "./api";
import type { Session } from "./api-types";
import type { IconName } from "./icons";
import type { Role } from "./roles";

// Has reports whether this build serves a route, for example "GET /api/usage".
export type Has = (route: string) => boolean;

// PageProps is what every page of a machine receives.
export interface PageProps {
  machine: Machine;
  session: Session;
  has: Has;
  /** the parts of the address after the page, see Route in route.ts */
  args: string[];
  /** set if the machine has a name and the operator is signed in */
  machineName?: string;
}

// PageEntry is a row of the table of pages, see pages.ts.
export interface PageEntry {
  /** the page is at #/m/{machineId}/{path} */
  path: string;
  /** in the navigation and as the page's heading */
  title: string;
  icon: IconName;
  /** it begins a group of the navigation */
  first?: boolean;
  /** a route without which the page is not offered */
  needs?: string;
  /** the least role that is offered the page; viewer if it is absent */
  role?: Role;
  /** the collections of its rows, which a configuration file may own */
  rows?: string[];
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}
