import type { Machine } from "../../api";
import { useAddressed } from "../../addressed";
import { useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import { toast } from "../../toast";
import { Button } from "../../ui";
import type { Destination, DestinationList } from "./destinations/destination";
import { Editor } from "./destinations/editor";
import { exports, notifications } from "./destinations/kinds";
import { Destinations } from "./destinations/list";

// groups are the sections, by their ids in the address: settings/notifications.
const groups = {
  notifications: {
    title: "Notifications",
    add: "Add a notification",
    presets: notifications,
    intro: "Messages when an account, a budget or a key needs you.",
    empty: "No notifications yet.",
    docs: "/docs/guides/alerts",
  },
  exports: {
    title: "Exports",
    add: "Add an export",
    presets: exports,
    intro: "Traces and metrics for your monitoring, and a line for each request in your own storage.",
    empty: "No exports yet.",
    docs: "/docs/guides/log-export",
  },
};

// blank is a new destination: settings/notifications/new.
const blank: Destination = {
  id: "",
  name: "",
  kind: "",
  enabled: true,
  settings: {},
  secrets: [],
  generation: 0,
  status: "active",
  waiting: 0,
  dropped: 0,
};

// All lists where messages, or telemetry and logs, are sent.
export default function All({ machine, id, asked }: { machine: Machine; id: keyof typeof groups; asked?: string }) {
  const list = useLoad(() => machine.get<DestinationList>("/destinations"), [machine]);
  const { title, add, presets, intro, empty, docs } = groups[id];
  const own = list.data?.data.filter((d) => presets.some((p) => p.kind === d.kind));
  const [edited, edit] = useAddressed(machine, `settings/${id}`, asked, own, blank);
  // Edits what is stored now; closes the editor if it was deleted.
  const reload = async () => {
    const now = await machine.get<DestinationList>("/destinations");
    list.set(now);
    edit(now.data.find((d) => d.id === edited?.id) ?? null);
  };
  return (
    <>
      <Section
        title={title}
        intro={
          <>
            {intro}{" "}
            <a href={docs} target="_blank" rel="noreferrer">
              More about {title.toLowerCase()}
            </a>
          </>
        }
        actions={
          <Button icon="plus" onClick={() => edit(blank)}>
            {add}
          </Button>
        }
      >
        <Load of={list} what={title.toLowerCase()} rows={1}>
          {() =>
            own!.length === 0 ? (
              <p class="muted">{empty}</p>
            ) : (
              <Destinations machine={machine} label={`${title}: list`} list={own!} reload={list.reload} onEdit={edit} />
            )
          }
        </Load>
      </Section>
      {edited && list.data && (
        <Editor
          key={edited.id}
          machine={machine}
          title={add}
          of={edited.id ? edited : null}
          presets={presets}
          events={list.data.events}
          onReload={reload}
          onDone={async (name) => {
            edit(null);
            toast(`Saved ${name}.`);
            await list.reload();
          }}
          onClose={() => edit(null)}
        />
      )}
    </>
  );
}
