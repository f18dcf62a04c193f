import type { ComponentType } from "preact";
import type { ConnectionRow, ModelRow, SettingValues } from "../api-types";
import { useLoad } from "../hooks";
import type { PageProps } from "../page";
import { go, to } from "../route";
import { readyFirst } from "../tools";
import { Tabs } from "../tabs";
import { Page } from "../layout";
import { Empty, ErrorBox, Skeleton } from "../ui";
import type { TryProps } from "./playground/call";
import { Chat } from "./playground/chat";
import { Embeddings } from "./playground/embeddings";
import "./playground/playground.css";
import { Image } from "./playground/image";
import { Search } from "./playground/search";
import { Speech } from "./playground/speech";

type Kind = "chat" | "embeddings" | "speech" | "image" | "search";

const kinds: Record<
  Kind,
  { name: string; noun: string; segment: string; only?: string; View: ComponentType<TryProps> }
> = {
  chat: { name: "Chat", noun: "chat", segment: "llm", View: Chat },
  embeddings: { name: "Embeddings", noun: "embedding", segment: "embedding", View: Embeddings },
  speech: { name: "Speech", noun: "speech", segment: "tts", View: Speech },
  image: { name: "Image", noun: "image", segment: "image", View: Image },
  search: { name: "Search", noun: "search", segment: "web", only: "webSearch", View: Search },
};

// Playground calls the machine's models as a client does, with a key that expires
// after an hour and is stored only in this page's memory.
export default function Playground({ machine, args }: PageProps) {
  const kind = (args[0] ?? "") in kinds ? (args[0] as Kind) : "chat";
  const { noun, segment, only, View } = kinds[kind];
  const models = useLoad(async () => {
    const [list, connections, settings] = await Promise.all([
      machine.list<ModelRow>(`/models/list/${segment}`),
      machine.list<ConnectionRow>("/providers"),
      machine.get<SettingValues>("/settings"),
    ]);
    // Without a connection the list is the built-in catalogue, which cannot be called.
    const callable = connections.length > 0 ? list : [];
    const ids = readyFirst(
      callable.filter((m) => !only || !m.kind || m.kind === only),
      connections,
    );
    // The machine's default model is the first choice.
    const standard = settings.defaultModel ?? "";
    return {
      of: kind,
      connections,
      ids: ids.includes(standard) ? [standard, ...ids.filter((id) => id !== standard)] : ids,
    };
  }, [machine, kind]);
  return (
    <Page title="Playground" intro="Test requests use a temporary key that expires in one hour.">
      <Tabs
        label="Kind"
        value={kind}
        items={(Object.keys(kinds) as Kind[]).map((k) => [k, kinds[k].name])}
        onPick={(k) => go(to(machine.id, "playground", k))}
      />
      {models.error ? (
        <ErrorBox retry={models.reload}>{models.error}</ErrorBox>
      ) : models.data?.of !== kind ? (
        <Skeleton what="models" />
      ) : models.data.ids.length === 0 ? (
        <Empty title={`No ${noun} models yet`}>
          <p>Add an account that has some.</p>
          <a class="button" href={to(machine.id, "providers", "add")}>
            Add account
          </a>
        </Empty>
      ) : (
        <View key={kind} machine={machine} models={models.data.ids} connections={models.data.connections} />
      )}
    </Page>
  );
}
