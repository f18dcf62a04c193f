import type { StatusPage } from "../../api-types";
import { Time } from "../../time";
import { Badge } from "../../ui";

const indicators: Record<string, [kind: "" | "good" | "warn" | "bad", text: string]> = {
  none: ["good", "No problems"],
  minor: ["warn", "Minor problems"],
  major: ["bad", "Major problems"],
  critical: ["bad", "Outage"],
  maintenance: ["", "Maintenance"],
};

// Reported is what a provider's public status page says, with a link to it. A page that was
// not read, or cannot be, has the indicator "unknown".
export function Reported({ page }: { page?: StatusPage }) {
  if (!page) return null;
  const link = (
    <a href={page.page} target="_blank" rel="noreferrer">
      {page.name} status
    </a>
  );
  if (!(page.indicator in indicators)) {
    return (
      <p class="small muted row tight wrap">
        {link}
        <span>The page could not be read.</span>
      </p>
    );
  }
  const [kind, text] = indicators[page.indicator];
  const said = [page.indicator !== "none" && page.description, page.incidents?.join(", ")].filter(Boolean).join(" — ");
  return (
    <p class="small muted row tight wrap">
      {link}
      <Badge kind={kind}>{text}</Badge>
      {said && <bdi>{said}</bdi>}
      {page.readAt && (
        <span>
          checked <Time at={page.readAt} as="clock" />
        </span>
      )}
    </p>
  );
}
