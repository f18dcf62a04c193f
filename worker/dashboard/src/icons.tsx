// Line icons on a grid of 24 units, in the colour of the text.
const paths = {
  machines: "M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01",
  overview: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  providers: "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
  combos: "M4 6h5l6 12h5M4 18h5l2-4M13 10l2-4h5M17.5 3.5L20 6l-2.5 2.5M17.5 15.5L20 18l-2.5 2.5",
  keys: "M14.5 9.5a4.5 4.5 0 1 0-4.3 4.49L12 12.5h2V10.5zM10 14l-1.5 1.5v2H6.5v2H3.5v-3l5-5",
  budgets: "M4 7h16v12H4zM4 10.5h16M7.5 15.5h4M4 7l3-3h10l3 3",
  connect: "M4 5h16v14H4zM7.5 9.5l3 2.5-3 2.5M12.5 15h4",
  usage: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  requests: "M4 6h16M4 12h16M4 18h10",
  playground: "M7 5l12 7-12 7z",
  explain: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 16.5h.01M9.8 9.5a2.3 2.3 0 1 1 3.4 2c-.8.5-1.200 1-1.200 2",
  people: "M9 11a3 3 0 1 0 0-7 3 3 0 0 0 0 7M3 20a6 6 0 0 1 12 0M16 4.5a3.5 3.5 0 0 1 0 6M18 14.5q3 2 3 5.5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.700l1.4-1.4M17.3 6.700l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  auto: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 3v18M12 7.5l5.5-1M12 12h9M12 16.5l5.5 1",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  chevron: "M6 9.5l6 6 6-6",
  signin: "M13 4h6v16h-6M4 12h11M11 8l4 4-4 4",
  docs: "M5 4h9l5 5v11H5zM14 4v5h5M8.5 13h7M8.5 16.5h5",
  grip: "M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  plus: "M12 5v14M5 12h14",
  out: "M10 4H5v16h5M15 8l4 4-4 4M19 12H9",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  check: "M5 12.5l4.5 4.5L19 7.5",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width={name === "grip" ? 2.5 : 1.75}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}
