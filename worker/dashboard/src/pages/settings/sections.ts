import type { Role } from "../../roles";

// SectionEntry is a row of the table of sections.
interface SectionEntry {
  /** the section is at #/m/{machineId}/settings/{id} */
  id: "routing" | "notifications" | "exports" | "captures" | "health" | "backup" | "audit";
  title: string;
  /** the least role that is offered the section; viewer if it is absent */
  role?: Role;
  /** by which it is found besides its title */
  words?: string;
  /** the labels of its settings, each of which is at …/settings/{id}/{label} */
  settings: string[];
}

// sections are the sections of the page Settings, of which one is shown, and what the command
// palette finds of them.
export const sections: SectionEntry[] = [
  {
    id: "routing",
    title: "Routing and timeouts",
    settings: [
      "Account strategy",
      "Default embedding input type",
      "Responses over WebSocket",
      "Prompt caching",
      "Append cost to streams",
      "Log client networks",
      "First-byte timeout (seconds)",
      "Stream idle timeout (seconds)",
      "Concurrent requests",
      "Time zone",
      "Tags from request fields",
      "Model for Claude Opus",
      "Model for Claude Sonnet",
      "Model for Claude Haiku",
      "Model for Claude Fable",
    ],
  },
  { id: "notifications", title: "Notifications", words: "alerts slack discord mail webhook", settings: [] },
  { id: "exports", title: "Exports", words: "opentelemetry metrics traces logs s3", settings: [] },
  {
    id: "captures",
    title: "Stored prompts",
    role: "owner",
    words: "prompts logging",
    settings: ["Share of requests (%)", "Keep for"],
  },
  {
    id: "health",
    title: "Health",
    words: "gateway version clock",
    settings: ["Status pages of providers", "Public status page"],
  },
  { id: "backup", title: "Backup", role: "owner", words: "export import restore", settings: [] },
  { id: "audit", title: "Audit log", words: "changes history", settings: [] },
];
