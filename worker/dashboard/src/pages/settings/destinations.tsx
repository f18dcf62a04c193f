import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useAddressed } from "../../addressed";
import type { Machine } from "../../api";
import { useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import { toast } from "../../toast";
import { Button } from "../../ui";
import type { Destination, DestinationList } from "./destinations/destination";
import { Editor } from "./destinations/editor";
import { exports, notifications, type Preset } from "./destinations/kinds";
import { Destinations } from "./destinations/list";

// groups are the sections. Each is named in the address: settings/notifications.
const groups = [
  {
    id: "notifications",
    title: "Notifications",
    add: "Add a notification",
    presets: notifications,
    intro: "Messages when an account, a budget or a key needs you.",
    empty: "No notifications yet.",
    docs: "/docs/guides/alerts",
  },
  {
    id: "exports",
    title: "Exports",
    add: "Add an export",
    presets: exports,
    intro: "Traces and metrics for your monitoring, and a line for each request in your own storage.",
    empty: "No exports yet.",
    docs: "/docs/guides/log-export",
  },
] as const;

// blank returns the place of a new destination in the address: settings/new-notifications.
const blank = (group: string): Destination => ({
  id: `new-${group}`,
  name: "",
  kind: "",
  enabled: true,
  settings: {},
  secrets: [],
  generation: 0,
  status: "active",
  waiting: 0,
  dropped: 0,
});

// All lists where messages, telemetry and logs are sent.
export default function All({ machine, asked }: { machine: Machine; asked?: string }) {
  const list = useLoad(() => machine.get<DestinationList>("/destinations"), [machine]);
  const all = list.data && [...list.data.data, ...groups.map((g) => blank(g.id))];
  const [edited, edit] = useAddressed(machine, "settings", asked, all, blank(""));
  const group = edited && groups.find((g) => edited.id === `new-${g.id}` || holds(g.presets, edited));
  return (
    <>
      {groups.map((g) => (
        <Here key={g.id} here={asked === g.id}>
          <Section
            title={g.title}
            intro={
              <>
                {g.intro}{" "}
                <a href={g.docs} target="_blank" rel="noreferrer">
                  More about {g.title.toLowerCase()}
                </a>
              </>
            }
            actions={
              <Button icon="plus" onClick={() => edit(blank(g.id))}>
                {g.add}
              </Button>
            }
          >
            <Load of={list} what={g.title.toLowerCase()} rows={1}>
              {({ data }) => {
                const own = data.filter((d) => holds(g.presets, d));
                return own.length === 0 ? (
                  <p class="muted">{g.empty}</p>
                ) : (
                  <Destinations
                    machine={machine}
                    label={`${g.title}: list`}
                    list={own}
                    reload={list.reload}
                    onEdit={edit}
                  />
                );
              }}
            </Load>
          </Section>
        </Here>
      ))}
      {edited && group && list.data && (
        <Editor
          key={edited.id}
          machine={machine}
          title={group.add}
          of={edited.generation ? edited : null}
          presets={group.presets}
          events={list.data.events}
          reload={list.reload}
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

const holds = (presets: Preset[], d: Destination) => presets.some((p) => p.kind === d.kind);

// Here scrolls to a section that the address names.
function Here({ here, children }: { here: boolean; children: ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (here) ref.current?.scrollIntoView({ block: "start" });
  }, [here]);
  return <div ref={ref}>{children}</div>;
}
