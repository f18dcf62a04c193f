// The rows that a configuration file of the server owns: pages say so, and what would answer 409
// managed_by_file is disabled with the reason.
import { createContext } from "preact";
import { useContext } from "preact/hooks";

// ConfigFile is the field file of GET /api/health: the rows that a file names, by the path of
// their collection; * stands for all of them.
export interface ConfigFile {
  name: string;
  state: "applied" | "pending" | "failed";
  error?: string;
  owned?: Record<string, string[]>;
}

// ManagedBy has the file of the machine, null without one.
export const ManagedBy = createContext<ConfigFile | null>(null);

// owns reports whether a file owns a row, /keys/ID, or all of a collection, /settings. An import
// changes all.
function owns({ owned }: ConfigFile, path: string): boolean {
  const at = path.lastIndexOf("/");
  return (
    !!owned &&
    (path === "/import" ||
      !!owned[`/api${path}`]?.includes("*") ||
      !!owned[`/api${path.slice(0, at)}`]?.includes(path.slice(at + 1)))
  );
}

// useManaged returns why rows or collections cannot be changed here, undefined if all can be.
export function useManaged(...paths: string[]): string | undefined {
  const file = useContext(ManagedBy);
  return file && paths.some((path) => owns(file, path)) ? `Managed by ${file.name}. Change it there.` : undefined;
}

// Managed says on a page that a file owns some of its rows, which are in collections.
export function Managed({ of }: { of: string[] }) {
  const file = useContext(ManagedBy);
  if (!file || !of.some((path) => file.owned?.[`/api${path}`]?.length)) return null;
  return (
    <div class="notice info" role="status">
      <div>
        Managed by <code>{file.name}</code>, the configuration file of the server. Change it there.
      </div>
    </div>
  );
}
