// Figures that Overview and Usage share: how requests ended, in which colors, and what is estimated.

// Figures are the numbers of a row, by the names of their JSON fields.
export type Figures = Partial<Record<string, number>>;

// outcomes are the parts of the requests, from the foot of a bar, with the classes of their colors.
export const outcomes: { name: string; color: string; value: (f: Figures) => number }[] = [
  { name: "Succeeded", color: "s0", value: (f) => f.succeeded ?? 0 },
  { name: "Provider failed", color: "bad", value: (f) => f.providerFailed ?? 0 },
  { name: "No account available", color: "s2", value: (f) => f.noAccount ?? 0 },
  { name: "Refused", color: "s3", value: (f) => f.refused ?? 0 },
  { name: "Client disconnected", color: "rest", value: (f) => f.left ?? 0 },
];

// answered returns the requests that the success rate is of: those that were not refused.
export const answered = (f: Figures) => (f.succeeded ?? 0) + (f.providerFailed ?? 0) + (f.noAccount ?? 0);

// successRate returns the share of the requests that providers have answered.
export const successRate = (f: Figures) => (answered(f) ? (f.succeeded ?? 0) / answered(f) : 0);

// approximate marks the text of what estimated attempts are a part of: tokens and, if it is no lower
// bound, the cost.
export const approximate = (id: string, text: string, attempts = 0) =>
  attempts > 0 && /^(tokens|inputTokens|outputTokens|cost)/.test(id) && text[0] !== "≥" ? `≈ ${text}` : text;
