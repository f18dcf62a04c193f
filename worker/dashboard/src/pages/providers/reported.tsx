import type { StatusPage } from "../../api-types";
import { Time } from "../../time";
import { Badge } from "../../ui";

const indicators: Record<string, [kind: "" | "good" | "warn" | "bad", text: string]> = {
  none: ["good", "No problems"],
  minor: ["warn", "Minor problems"],
  major: ["bad", "Major problems"],
  critical: ["bad", "Outage"],
  maintenance: ["", "Maintenance"],
  unknown: ["", "Unknown"],
};

// Reported is what a provider's public status page says, with a link to it.
export function Reported({ page }: { page?: StatusPage }) {
  if (!page) return null;
  const [kind, text] = indicators[page.indicator] ?? indicators.unknown;
  const said = [page.description, page.incidents?.join(", ")].filter(Boolean).join(" — ");
  return (
    <p class="small muted row tight wrap">
      <span>{page.name} reports:</span>
      <Badge kind={kind}>{text}</Badge>
      {said && <bdi>{said}</bdi>}
      {page.readAt && (
        <span>
          read at <Time at={page.readAt} as="clock" />
        </span>
      )}
      <a href={page.page} target="_blank" rel="noreferrer">
        Status page<span class="hidden"> of {page.name}</span>
      </a>
    </p>
  );
}
