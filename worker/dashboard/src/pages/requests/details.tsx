import type { ComponentChildren } from "preact";
import type { Machine } from "../../api";
import type { RequestRow } from "../../api-types";
import { providerName } from "../../connections";
import { Copy } from "../../code";
import { Dialog } from "../../dialog";
import { money } from "../../amounts";
import { bytes, number } from "../../format";
import { useLoad } from "../../hooks";
import { Load } from "../../layout";
import { to } from "../../route";
import { Time } from "../../time";
import { Badge, Cut, Notice } from "../../ui";
import { Bodies } from "./bodies";
import { explainLink } from "./explain";
import { changed } from "./changed";
import { meaningOf, outcome, statusText } from "./outcome";
import { costText, Models, Named } from "./row";
import { Waterfall } from "./waterfall";

interface Props {
  machine: Machine;
  id: string;
  /** the request if the list has it; it is loaded otherwise */
  listed?: RequestRow;
  connectionName: (id?: string) => string;
  /** the address of an account, "" for one that does not exist */
  accountLink: (id?: string) => string;
  keyName: (id?: string) => string;
  onClose: () => void;
}

// costOf returns the cost of a request in words, or what keeps it unknown.
function costOf(r: RequestRow) {
  if (r.priced) return (r.estimated ? "≈ " : "") + money(r.costUsd ?? 0);
  const parts = r.unpricedParts?.map((p) => p.replaceAll("_", " ")).join(", ");
  const why = parts ? `No price for: ${parts}` : r.inputTokens && "No known price";
  return r.costUsd ? [costText(r, money), why].filter(Boolean).join(", ") : why || undefined;
}

// Details is the drawer with everything that is stored of a request.
export function Details({ machine, id, listed, onClose, ...names }: Props) {
  const loaded = useLoad(
    async () => listed ?? (await machine.get<RequestRow>(`/requests/${encodeURIComponent(id)}`)),
    [machine, id],
  );
  return (
    <Dialog title="Request" drawer onClose={onClose}>
      <Load of={loaded} what="request" rows={4}>
        {(r) => <Shown r={r} machine={machine} {...names} />}
      </Load>
    </Dialog>
  );
}

function Shown({
  r,
  machine,
  connectionName,
  accountLink,
  keyName,
}: Omit<Props, "id" | "listed" | "onClose"> & { r: RequestRow }) {
  const result = outcome(r);
  const meaning = meaningOf(r);
  const cause = r.message ?? (r.attempts === r.failed?.length ? r.failed.at(-1)?.text : undefined);
  const explain = machine.may("viewer") && explainLink(machine.id, r);
  const missing = r.error === "no_credentials" && /^No (.+) account /.exec(r.message ?? "")?.[1]; // provider
  const [notSent, set] = changed(r.dropped);
  const about = r.estimated ? "≈ " : "";
  return (
    <>
      <div class="row wrap">
        <Badge kind={result.kind}>{result.text}</Badge>
        {r.asked || r.model ? <Models r={r} /> : <code>{r.endpoint}</code>}
      </div>
      {r.error && result.kind !== "" && (
        <Notice kind="warn">
          {cause && <span>{cause} </span>}
          {missing && machine.may("editor") && (
            <a href={`${to(machine.id, "providers", "add")}?q=${encodeURIComponent(missing)}`}>Connect {missing}</a>
          )}{" "}
          <code>{r.error}</code>{" "}
          {meaning && (
            <a href={meaning} target="_blank" rel="noreferrer">
              What this error means
            </a>
          )}
        </Notice>
      )}
      <dl class="facts">
        <Fact name="Time">
          <Time at={r.at} as="day" /> <Time at={r.at} as="time" />
        </Fact>
        <Fact name="Request ID">
          <code>{r.id}</code>
        </Fact>
        <Fact name="Trace ID">{r.traceparent && <code>{r.traceparent.slice(3, 35)}</code>}</Fact>
        <Fact name="Endpoint">
          <code>{r.endpoint}</code>
        </Fact>
        <Fact name="Key">{r.keyId && <Named id={r.keyId} name={keyName(r.keyId)} />}</Fact>
        <Fact name="Tool">{r.tool}</Fact>
        <Fact name="Tags">{r.tags && <bdi>{r.tags.join(", ")}</bdi>}</Fact>
        <Fact name="Latency">
          {number(r.latencyMs)} ms{r.firstMs !== undefined && `, first token after ${number(r.firstMs)} ms`}
        </Fact>
        <Fact name="Input tokens">
          {r.inputTokens !== undefined &&
            about + number(r.inputTokens) + (r.cacheReadTokens ? `, ${number(r.cacheReadTokens)} of them cached` : "")}
        </Fact>
        <Fact name="Output tokens">
          {r.outputTokens !== undefined &&
            about +
              number(r.outputTokens) +
              (r.reasoningTokens ? `, ${number(r.reasoningTokens)} of them reasoning` : "")}
        </Fact>
        <Fact name="Cost">{costOf(r)}</Fact>
        <Fact name="Estimated">{r.estimated && "The provider did not report all tokens."}</Fact>
        <Fact name="Request size">{r.requestBytes !== undefined && bytes(r.requestBytes)}</Fact>
        <Fact name="Answer size">{r.answerBytes !== undefined ? bytes(r.answerBytes) : r.firstMs && "Streamed"}</Fact>
        <Fact name="Fields not sent">{notSent && <code>{notSent}</code>}</Fact>
        <Fact name="Set by weir">{set && <code>{set}</code>}</Fact>
      </dl>
      <Waterfall r={r} connectionName={connectionName} />
      <section aria-label="Attempts" class="stack">
        <h3>Attempts</h3>
        <Attempts r={r} connectionName={connectionName} accountLink={accountLink} />
      </section>
      <Bodies machine={machine} r={r} />
      <div class="row wrap">
        {explain && (
          <a class="button" href={explain}>
            Explain this request
          </a>
        )}
        <Copy text={r.id} label="Copy ID" />
        <Copy text={JSON.stringify(r, null, 2)} label="Copy JSON" />
        <Copy text={location.href} label="Copy link" />
      </div>
    </>
  );
}

// Fact is an entry of the list of facts. It is left out if its value is not known.
function Fact({ name, children }: { name: string; children?: ComponentChildren }) {
  if (children === undefined || children === false || children === "") return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

// Attempts lists the attempts with their times from the arrival of the request.
function Attempts({
  r,
  connectionName,
  accountLink,
}: Pick<Props, "connectionName" | "accountLink"> & { r: RequestRow }) {
  if (r.attempts === 0) return <p class="muted">Not sent to a provider.</p>;
  const failed = r.failed ?? [];
  const answered = r.attempts > failed.length && r.connectionId;
  return (
    <ol class="steps" aria-label="Attempts">
      {failed.map((f, i) => (
        <li key={`${i}`}>
          <span class="place" aria-hidden="true">
            {i + 1}
          </span>
          <div>
            <p>
              <Account
                id={f.connectionId}
                link={accountLink(f.connectionId)}
                name={connectionName(f.connectionId) || providerName(f.provider, [])}
              />{" "}
              {f.model && (
                <>
                  as <code>{f.model}</code>{" "}
                </>
              )}
              <Badge kind="bad">{statusText(f.status, f.code)}</Badge>
            </p>
            <p class="small muted">
              Sent after {number(f.sentMs ?? 0)} ms, failed after {number(f.ms)} ms
            </p>
            {f.text && <p class="small">{f.text}</p>}
            {f.code && (
              <p class="small">
                <code>{f.code}</code>
              </p>
            )}
          </div>
        </li>
      ))}
      {answered && (
        <li>
          <span class="place" aria-hidden="true">
            {failed.length + 1}
          </span>
          <div>
            <p>
              <Account
                id={r.connectionId}
                link={accountLink(r.connectionId)}
                name={connectionName(r.connectionId) || providerName(r.provider ?? "", [])}
              />{" "}
              {r.model && (
                <>
                  as <code>{r.model}</code>{" "}
                </>
              )}
              <Badge kind={r.error ? "warn" : "good"}>{r.error ? "Interrupted" : "Answered"}</Badge>
            </p>
            <p class="small muted">
              {r.sentMs !== undefined
                ? `Sent after ${number(r.sentMs)} ms, ended after ${number(Math.max(0, r.latencyMs - r.sentMs))} ms`
                : `Ended ${number(r.latencyMs)} ms after the request arrived`}
            </p>
          </div>
        </li>
      )}
    </ol>
  );
}

// Account links to an account that exists.
function Account({ id, link, name }: { id?: string; link: string; name: string }) {
  if (!link) return <Named id={id} name={name} />;
  return (
    <a href={link}>
      <Cut>{name}</Cut>
    </a>
  );
}
