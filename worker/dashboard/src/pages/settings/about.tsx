import { call, type Machine } from "../../api";
import { maxSkewMs } from "../../clock";
import { bytes, count, duration, number } from "../../format";
import { useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import type { ConfigFile } from "../../managed";
import { Time } from "../../time";
import { Badge, Button } from "../../ui";
import "../../meter.css";

// Health is the body of GET /api/health.
interface Health {
  ok: boolean;
  now: number;
  configuration: { bytes: number; maxBytes: number };
  file?: ConfigFile;
  replica?: { pending: boolean; publishedAt?: number; failures: number };
  alerts: { waiting: number; failing: number };
  auditRecords: number;
  credentials: { unreadable: number; earlier?: number };
}

// Version is the body of GET /api/version.
interface Version {
  version: string;
  newer?: string; // release
  prices?: { source: string; fetchedAt?: number; failedAt?: number; error?: string };
}

const docs: [path: string, name: string][] = [
  ["/docs/", "Documentation"],
  ["/docs/reference/api", "API reference"],
  ["/openapi.json", "OpenAPI document"],
  ["/docs/troubleshooting", "Troubleshooting"],
  ["/docs/privacy", "Privacy"],
  ["/docs/upgrading", "Upgrading"],
];

// About shows the health of the gateway, its version and links to its documentation.
export function About({ machine, operator }: { machine: Machine; operator: boolean }) {
  const loaded = useLoad(async () => {
    const began = performance.now();
    const health = await machine.get<Health>("/health");
    const ms = Math.round(performance.now() - began);
    const skewMs = Date.now() - ms / 2 - health.now;
    const build = operator ? await call<Version>("GET", "/api/version") : null;
    return { health, ms, skewMs, build };
  }, [machine, operator]);
  return (
    <Section
      title="Gateway"
      actions={
        <Button busy={loaded.loading} onClick={() => void loaded.reload()}>
          Check again
        </Button>
      }
    >
      <Load of={loaded} what="health" rows={2}>
        {({ health: h, ms, skewMs, build }) => (
          <dl class="facts">
            <dt>Health</dt>
            <dd>
              {h.ok && Math.abs(skewMs) < maxSkewMs ? (
                <Badge kind="good">Healthy</Badge>
              ) : (
                <Badge kind="warn">Needs attention</Badge>
              )}{" "}
              <span class="muted">
                Checked <Time at={h.now} as="time" />: the gateway and this machine’s storage answered in {number(ms)}{" "}
                ms. Providers are not part of it.
              </span>
            </dd>
            {build && (
              <>
                <dt>Version</dt>
                <dd>
                  <code>{build.version}</code>
                  {build.newer && (
                    <>
                      {" "}
                      <Badge kind="accent">{build.newer} is available</Badge> Run <code>weir upgrade</code>, then
                      restart the server.
                    </>
                  )}
                </dd>
                <dt>Prices</dt>
                <dd>
                  <Prices of={build.prices} />
                </dd>
              </>
            )}
            <dt>Configuration</dt>
            <dd>
              {bytes(h.configuration.bytes)} of {bytes(h.configuration.maxBytes)}
            </dd>
            {h.file && (
              <>
                <dt>Configuration file</dt>
                <dd>
                  {h.file.state === "failed" ? (
                    <>
                      <Badge kind="warn">Not applied</Badge> {h.file.error}
                    </>
                  ) : h.file.state === "pending" ? (
                    "Being applied"
                  ) : (
                    <>
                      <code>{h.file.name}</code> is applied. Make changes there.
                    </>
                  )}
                </dd>
              </>
            )}
            {h.replica && (
              <>
                <dt>Copy on Cloudflare</dt>
                <dd>
                  {h.replica.failures > 0 ? (
                    `Failed ${count(h.replica.failures, "time")}. The gateway tries again by itself.`
                  ) : h.replica.pending ? (
                    "A change is being written"
                  ) : (
                    <>
                      Up to date
                      {h.replica.publishedAt && (
                        <>
                          , written <Time at={h.replica.publishedAt} />
                        </>
                      )}
                    </>
                  )}
                </dd>
              </>
            )}
            <dt>Notifications</dt>
            <dd>
              {h.alerts.waiting === 0
                ? "None is waiting to be sent"
                : `${number(h.alerts.waiting)} waiting to be sent, ${number(h.alerts.failing)} of them failed and will be tried again`}
            </dd>
            {(h.credentials.unreadable > 0 || h.credentials.earlier !== undefined) && (
              <>
                <dt>Credentials key</dt>
                <dd>
                  {h.credentials.unreadable > 0
                    ? `CREDENTIALS_KEY doesn’t open ${count(h.credentials.unreadable, "credential")} of accounts and destinations. Set the key that sealed them, or replace them.`
                    : h.credentials.earlier
                      ? `Still sealed with the earlier key: ${count(h.credentials.earlier, "credential")} of accounts and destinations`
                      : "Nothing is sealed with the earlier key"}
                </dd>
              </>
            )}
            <dt>Clock</dt>
            <dd>
              {Math.abs(skewMs) < maxSkewMs
                ? "Within a minute of this computer’s"
                : `${duration(Math.abs(skewMs))} ${skewMs > 0 ? "behind" : "ahead of"} this computer. Check both clocks: sign-ins and signatures need the right time.`}
            </dd>
            <dt>Audit log</dt>
            <dd>{count(h.auditRecords, "entry")} since this machine was created</dd>
          </dl>
        )}
      </Load>
      <ul class="row wrap" aria-label="Documentation">
        {docs.map(([path, name]) => (
          <li key={path}>
            <a href={path}>{name}</a>
          </li>
        ))}
      </ul>
    </Section>
  );
}

// Prices shows when the prices were last refreshed, and why not since.
function Prices({ of: p }: { of: Version["prices"] }) {
  if (!p) return <>Built-in prices; refreshing is off (PRICES_URL)</>;
  return (
    <>
      {p.fetchedAt ? (
        <>
          Refreshed <Time at={p.fetchedAt} /> from {p.source}
        </>
      ) : (
        `Built in; not yet refreshed from ${p.source}`
      )}
      {p.failedAt && (
        <>
          . <Badge kind="warn">Failed</Badge> <Time at={p.failedAt} />: {p.error}
        </>
      )}
    </>
  );
}
