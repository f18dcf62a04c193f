// The pages of the documentation in their order. A page that is in no group is
// reached by links and by the search; a test names one that is neither.
export const navigation = [
  {
    title: "Start",
    pages: ["", "quick-start", "concepts", "connections", "providers/", "keys", "clients", "troubleshooting"],
  },
  {
    title: "Calls",
    pages: ["routing", "fallback", "calls", "creations", "prices"],
  },
  {
    title: "People and spend",
    pages: ["guides/team", "guides/sign-in", "guides/budgets", "guides/spend", "guides/leaked-token"],
  },
  {
    title: "Watch",
    pages: [
      "guides/alerts",
      "guides/health",
      "guides/observability",
      "guides/opentelemetry",
      "guides/log-export",
      "guides/captured-bodies",
    ],
  },
  {
    title: "Run",
    pages: [
      "guides/self-hosting",
      "guides/several-servers",
      "deploying",
      "guides/cost",
      "upgrading",
      "guides/command-line",
      "guides/configuration-file",
      "guides/from-other-gateways",
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
    pages: ["reference/api", "reference/errors", "reference/", "compatibility", "glossary"],
  },
  {
    title: "About",
    pages: ["faq", "compare", "benchmark", "privacy", "security"],
  },
];
