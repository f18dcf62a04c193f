import type { Machine } from "../../api";
import type { SettingValues } from "../../api-types";
import { useAction, useLoad } from "../../hooks";
import { Load, Section } from "../../layout";
import { useManaged } from "../../managed";
import { toast } from "../../toast";
import { ErrorBox } from "../../ui";
import { Setting } from "./setting";

// Health has the settings of what is read and shown of the health of providers.
export function Health({ machine }: { machine: Machine }) {
  const loaded = useLoad(() => machine.get<SettingValues>("/settings"), [machine]);
  const save = useAction();
  const managed = useManaged("/settings");
  const put = (part: Partial<SettingValues>) =>
    save.run(async () => {
      loaded.set((await machine.tagged<SettingValues>("PATCH", "/settings", part)).value);
      toast("Settings saved.");
    });
  return (
    <Section
      title="Health"
      intro={
        <>
          Status pages of your providers, and one of your own.{" "}
          <a href="/docs/guides/health" target="_blank" rel="noreferrer">
            More about health
          </a>
        </>
      }
    >
      <Load of={loaded} what="settings" rows={1}>
        {(v) => (
          <div class="grid">
            <Setting
              label="Status pages of providers"
              hint="Checked when you open Providers, at most every five minutes."
            >
              <select
                disabled={!!managed}
                title={managed}
                value={v.statusFeeds}
                onChange={(e) => void put({ statusFeeds: e.currentTarget.value })}
              >
                <option value="on">Show</option>
                <option value="off">Don’t show</option>
              </select>
            </Setting>
            <Setting
              label="Public status page"
              hint={
                v.publicStatus === "off" ? (
                  "Shows no account names, keys, costs or counts."
                ) : (
                  <a href={`/${machine.id}/status`} target="_blank" rel="noreferrer">
                    {location.origin}/{machine.id}/status
                  </a>
                )
              }
            >
              <select
                disabled={!!managed}
                title={managed}
                value={v.publicStatus}
                onChange={(e) => void put({ publicStatus: e.currentTarget.value })}
              >
                <option value="off">Off</option>
                <option value="providers">Show providers</option>
                <option value="models">Show models</option>
              </select>
            </Setting>
          </div>
        )}
      </Load>
      {save.error && <ErrorBox>{save.error}</ErrorBox>}
    </Section>
  );
}
