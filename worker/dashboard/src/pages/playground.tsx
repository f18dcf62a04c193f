import type { ComponentType } from "preact";
import type { PageProps } from "../app";
import type { Machine } from "../api";
import { useLoad } from "../hooks";
import { go, to } from "../route";
import { Code, Empty, Field, Notice, Page, Skeleton, Table, Tabs, ErrorBox } from "../ui";
import type { ConnectionRow } from "../connections";
import { attemptsText, curlOf, served } from "../client";
import { Chat } from "./playground/chat";
import { Embeddings } from "./playground/embeddings";
import { Image, Search, Speech } from "./playground/media";

// TryProps is what every part of the playground gets.
export interface TryProps {
  machine: Machine;
  models: string[];
  connections: ConnectionRow[];
}

// Sent is a call that was answered: how it looked and what its head said.
export interface Sent {
  path: string;
  body: unknown;
  res: Response;
  ms: number;
}

type Kind = "chat" | "embeddings" | "speech" | "image" | "search";

const kinds: Record<Kind, { name: string; segment: string; only?: string; View: ComponentType<TryProps> }> = {
  chat: { name: "Chat", segment: "llm", View: Chat },
  embeddings: { name: "Embeddings", segment: "embedding", View: Embeddings },
  speech: { name: "Speech", segment: "tts", View: Speech },
  image: { name: "Image", segment: "image", View: Image },
  search: { name: "Search", segment: "web", only: "webSearch", View: Search },
};

// Playground calls the machine's models as a client does, with a key that is
// good for an hour and known to this page alone.
export default function Playground({ machine, args }: PageProps) {
  const kind = (args[0] ?? "") in kinds ? (args[0] as Kind) : "chat";
  const { name, segment, only, View } = kinds[kind];
  const models = useLoad(async () => {
    const [{ data }, connections] = await Promise.all([
      machine.get<{ data: { id: string; kind?: string }[] }>(`/models/list/${segment}`),
      machine.get<{ data: ConnectionRow[] }>("/providers"),
    ]);
    // Without a connection the list is the whole catalogue, and nothing of it can be called.
    return {
      of: kind,
      connections: connections.data,
      ids:
        connections.data.length === 0 ? [] : data.filter((m) => !only || !m.kind || m.kind === only).map((m) => m.id),
    };
  }, [machine, kind]);
  return (
    <Page
      title="Playground"
      intro="Calls go through the gateway as those of a client, with a key that is good for an hour and is kept in this page’s memory alone."
    >
      <Tabs
        label="What to try"
        value={kind}
        items={(Object.keys(kinds) as Kind[]).map((k) => [k, kinds[k].name])}
        onPick={(k) => go(to(machine.id, "playground", k))}
      />
      {models.error ? (
        <ErrorBox retry={models.reload}>{models.error}</ErrorBox>
      ) : models.data?.of !== kind ? (
        <Skeleton what="the models" />
      ) : models.data.ids.length === 0 ? (
        <Empty title={`No models for this: ${name.toLowerCase()}`}>
          <p>Connect a provider that has some.</p>
          <a class="button" href={to(machine.id, "providers", "add")}>
            Add a provider
          </a>
        </Empty>
      ) : (
        <View key={kind} machine={machine} models={models.data.ids} connections={models.data.connections} />
      )}
    </Page>
  );
}

export function ModelField({
  models,
  value,
  onPick,
}: {
  models: string[];
  value: string;
  onPick: (m: string) => void;
}) {
  return (
    <Field label="Model">
      <input
        list="try-models"
        required
        autocapitalize="none"
        spellcheck={false}
        value={value}
        onInput={(e) => onPick(e.currentTarget.value)}
      />
      <datalist id="try-models">
        {models.slice(0, 800).map((m) => (
          <option key={m} value={m} />
        ))}
      </datalist>
    </Field>
  );
}

// Details are the head of the answer, and the call as a command.
export function Details({ sent }: { sent: Sent }) {
  const s = served(sent.res);
  return (
    <div class="stack">
      <p class="muted small" role="status">
        {sent.res.status} after {sent.ms} ms
        {s.model && (
          <>
            , by <code>{s.model}</code>
          </>
        )}
        {s.attempts > 0 && `, ${attemptsText(s)}`}.
      </p>
      {s.dropped.length > 0 && (
        <Notice kind="warn">The provider does not know these fields, they were left out: {s.dropped.join(", ")}</Notice>
      )}
      <details>
        <summary>Headers of the answer</summary>
        <Table label="Headers of the answer" stacked>
          <tbody class="heads">
            {[...sent.res.headers].map(([k, v]) => (
              <tr key={k}>
                <th scope="row">
                  <code>{k}</code>
                </th>
                <td>
                  <code>{v}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      </details>
      <details>
        <summary>The call with curl</summary>
        <Code label="The call with curl" text={curlOf(sent.path, sent.body)} />
      </details>
    </div>
  );
}
