// strategies are the ways to order the models of a combo; "" is the API's fallback.
export const strategies: [value: string, name: string][] = [
  ["", "In order (the next one on failure)"],
  ["round-robin", "Round-robin"],
  ["affinity", "Sticky sessions (best for caching)"],
  ["weighted", "Weighted (canary)"],
  ["cheapest", "Cheapest"],
  ["fastest", "Fastest"],
  ["least-busy", "Least busy"],
];

// strategyOf returns the value of a combo's strategy.
export const strategyOf = (strategy = "") => (/^(fallback|priority)$/.test(strategy) ? "" : strategy);

// strategyName returns the name of a strategy within a sentence.
export const strategyName = (strategy?: string) =>
  strategies
    .find(([value]) => value === strategyOf(strategy))?.[1]
    .replace(/ \(.*/, "")
    .toLowerCase() ?? strategy;
