import list from "../../../../../server/cli/servers.json" with { type: "json" };

// Programs that serve models by OpenAI's API, with their usual addresses.
export interface Server {
  id: string;
  name: string;
  /** of its mark */
  initials: string;
  baseUrl: string;
  prefix: string;
  /** what users may also search for */
  also: string;
}

// weir accounts add takes the same ones.
export const servers: Server[] = list;

// serverFits reports whether a server is meant by a search, in lower case.
export const serverFits = (s: Server, query: string) =>
  `${s.name} ${s.also} local server openai-compatible`.toLowerCase().includes(query);
