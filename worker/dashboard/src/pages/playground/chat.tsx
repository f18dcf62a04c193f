import { useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../../api";
import { useStore } from "../../draft";
import { Section } from "../../layout";
import { useFilter } from "../../route";
import { Button, ErrorBox, Field } from "../../ui";
import { bodyOf, faultsOf, type Turn } from "./body";
import { Details, ModelField, Snippets, type TryProps } from "./call";
import {
  again,
  changeSide,
  clear,
  newSide,
  path,
  pending,
  send,
  sendResults,
  stop,
  type TalkStore,
  talkOf,
} from "./conversation";
import { Parameters } from "./options";
import { Attach, Pictures, readPictures } from "./pictures";
import { TurnView } from "./turn";

// Chat is a conversation with a model, or with two side by side.
export function Chat({ machine, models }: TryProps) {
  const [first, setFirst] = useFilter("model", ""),
    [second, setSecond] = useFilter("with", "");
  const store = talkOf(machine, first || models[0]),
    talk = useStore(store);
  const { sides, draft, pictures, options } = talk;
  const [error, setError] = useState("");
  const input = useRef<HTMLTextAreaElement>(null);
  const put = (part: Partial<typeof talk>) => store.set({ ...store.get(), ...part });
  // The models of the address are compared, whatever an earlier visit has compared, also
  // if only the models change in the address of an open page.
  useEffect(() => {
    const { sides } = store.get();
    if (first && first !== sides[0].model) changeSide(store, 0, { model: first });
    if (second && second !== sides[1]?.model) compare(second);
  }, [first, second]);
  const compare = (model: string) => {
    const { sides } = store.get();
    if (sides.length > 1) changeSide(store, 1, { model });
    else
      put({
        sides: [
          ...sides,
          newSide(
            model,
            sides[0].turns.filter((t) => t.content || t.calls),
          ),
        ],
      });
    setSecond(model);
  };
  const stopComparing = () => {
    sides[1].running?.abort();
    put({ sides: sides.slice(0, 1) });
    setSecond("");
  };
  const pick = (at: number, model: string) => {
    changeSide(store, at, { model });
    (at === 0 ? setFirst : setSecond)(model);
  };
  const attach = (files: Iterable<File>) => {
    setError("");
    readPictures(files, pictures, (p) => put({ pictures: [...store.get().pictures, p] })).catch((e) =>
      setError(errorText(e)),
    );
  };

  const faults = faultsOf(options),
    running = sides.some((s) => s.running),
    sendable = draft.trim() !== "" || pictures.length > 0;
  // ready reports whether the options can be sent, and says what is wrong with them.
  const ready = () => {
    setError(faults.map((f) => f.text).join(" "));
    return faults.length === 0 && sides.every((s) => s.model.trim());
  };
  const submit = (e: Event) => {
    e.preventDefault();
    if (!sendable || running || !ready()) return;
    send(machine, store);
    input.current?.focus();
  };
  const sendOnEnter = (e: KeyboardEvent) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) submit(e);
  };
  // The call that Send makes, or the last one if nothing is typed.
  const call = () => {
    const { turns, model } = sides[0];
    const typed: Turn[] = sendable
      ? [...turns, { role: "user", content: draft.trim(), pictures }]
      : turns.at(-1)?.role === "assistant"
        ? turns.slice(0, -1)
        : turns;
    const asked: Turn[] = typed.length > 0 ? typed : [{ role: "user", content: "Hello" }];
    return bodyOf(faults.length > 0 ? { ...options, tools: "", format: "" } : options, model, asked);
  };
  return (
    <Section
      title="Chat"
      actions={
        <>
          {sides.length > 1 ? (
            <Button onClick={stopComparing}>Stop comparing</Button>
          ) : (
            <Button onClick={() => compare(models.find((m) => m !== sides[0].model) ?? models[0])}>
              Compare models
            </Button>
          )}
          <Button disabled={sides.every((s) => s.turns.length === 0)} onClick={() => clear(store)}>
            New chat
          </Button>
        </>
      }
    >
      <Parameters value={options} faults={faults} onChange={(o) => put({ options: o })} />
      <div class={sides.length > 1 ? "duo" : ""}>
        {sides.map((_, at) => (
          <SideView
            key={at}
            machine={machine}
            models={models}
            store={store}
            at={at}
            ready={ready}
            onPick={(m) => pick(at, m)}
          />
        ))}
      </div>
      {error && <ErrorBox>{error}</ErrorBox>}
      <form
        class="stack"
        onSubmit={submit}
        onDragOver={(e) => {
          if (e.dataTransfer?.types.includes("Files")) e.preventDefault();
        }}
        onDrop={(e) => {
          if (!e.dataTransfer?.files.length) return;
          e.preventDefault();
          attach(e.dataTransfer.files);
        }}
      >
        <Pictures list={pictures} onRemove={(at) => put({ pictures: pictures.filter((_, i) => i !== at) })} />
        <Field label="Message">
          <textarea
            class="prose"
            dir="auto"
            rows={2}
            ref={input}
            value={draft}
            onInput={(e) => put({ draft: e.currentTarget.value })}
            onKeyDown={sendOnEnter}
            onPaste={(e) => {
              const files = [...(e.clipboardData?.files ?? [])];
              if (files.length > 0) attach(files);
            }}
          />
        </Field>
        <div class="row wrap between">
          <Attach onFiles={attach} />
          {running ? (
            <Button kind="danger" onClick={() => stop(store)}>
              Stop
            </Button>
          ) : (
            <Button kind="main" type="submit" disabled={!sendable}>
              Send
            </Button>
          )}
        </div>
      </form>
      <Snippets machine={machine} path={path} body={call} />
    </Section>
  );
}

// SideView is the conversation with one model.
function SideView({
  machine,
  models,
  store,
  at,
  ready,
  onPick,
}: Pick<TryProps, "machine" | "models"> & {
  store: TalkStore;
  at: number;
  ready: () => boolean;
  onPick: (model: string) => void;
}) {
  const side = useStore(store).sides[at],
    { turns } = side;
  const log = useRef<HTMLDivElement>(null),
    atEnd = useRef(true);
  // The end stays in sight unless the user has scrolled away from it.
  useEffect(() => {
    if (atEnd.current && log.current) log.current.scrollTop = log.current.scrollHeight;
  }, [turns]);
  const calls = side.running ? [] : pending(side);
  const repeat = () => {
    if (ready()) again(machine, store, at);
  };
  return (
    <div class="stack">
      <ModelField label={at === 0 ? "Model" : "Second model"} models={models} value={side.model} onPick={onPick} />
      <div
        class="talk"
        role="log"
        aria-label={at === 0 ? "Conversation" : "Second conversation"}
        aria-busy={!!side.running}
        tabIndex={0}
        ref={log}
        onScroll={({ currentTarget: el }) => {
          atEnd.current = el.scrollHeight - el.scrollTop - el.clientHeight < 32;
        }}
      >
        {turns.length === 0 && <p class="muted">Send a message to begin.</p>}
        {turns.map((t, i) => (
          <TurnView key={i} machine={machine} turn={t} running={!!side.running && i === turns.length - 1} />
        ))}
      </div>
      {side.error && <ErrorBox retry={side.running ? undefined : repeat}>{side.error}</ErrorBox>}
      {calls.length > 0 && (
        <form
          class="stack"
          onSubmit={(e) => {
            e.preventDefault();
            if (ready()) sendResults(machine, store, at);
          }}
        >
          {calls.map((c, i) => (
            <Field key={i} label={`Result of ${c.name}`}>
              <textarea
                rows={2}
                spellcheck={false}
                value={side.results[c.id] ?? ""}
                onInput={(e) => changeSide(store, at, { results: { ...side.results, [c.id]: e.currentTarget.value } })}
              />
            </Field>
          ))}
          <Button type="submit">Send results</Button>
        </form>
      )}
      {!side.running && !side.error && turns.at(-1)?.role === "assistant" && (
        <div>
          <Button kind="quiet" onClick={repeat}>
            Regenerate
          </Button>
        </div>
      )}
      {side.sent && <Details sent={side.sent} of={at === 0 ? "" : "second model"} />}
    </div>
  );
}
