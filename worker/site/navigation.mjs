// The pages of the documentation in their order. A page that is in no group is
// reached by links and by the search; a test names one that is neither.
export const navigation = [
  {
    title: "Start",
    pages: ["", "quick-start", "concepts", "connections", "providers/", "keys", "clients"],
  },
  {
    title: "Use",
    pages: [
      "routing",
      "fallback",
      "guides/budgets",
      "guides/alerts",
      "guides/spend",
      "guides/captured-bodies",
      "guides/health",
      "guides/opentelemetry",
      "prices",
      "creations",
      "compatibility",
      "troubleshooting",
      "privacy",
      "benchmark",
      "glossary",
    ],
  },
  {
    title: "Run",
    pages: [
      "guides/self-hosting",
      "guides/several-servers",
      "deploying",
      "guides/command-line",
      "guides/configuration-file",
      "guides/observability",
      "guides/cost",
      "upgrading",
    ],
  },
  {
    title: "Tools",
    pages: [
      "guides/claude-code",
      "guides/codex",
      "guides/gemini-cli",
      "guides/opencode",
      "guides/cursor",
      "guides/cline",
      "guides/continue",
      "guides/open-webui",
      "guides/openai-python",
      "guides/openai-node",
      "guides/anthropic-python",
      "guides/anthropic-node",
      "guides/google-genai",
      "guides/curl",
    ],
    more: "clients",
  },
  {
    title: "Reference",
    pages: ["reference/api", "reference/errors", "reference/"],
  },
  {
    title: "Change weir",
    pages: ["architecture", "development", "extending", "adding-a-provider", "decisions/"],
  },
];
