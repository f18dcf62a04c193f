import type { ConnectionRow, ProviderRow } from "../../api-types";
import { keyText, providerName } from "../../connections";
import { useLoad } from "../../hooks";
import type { PageProps } from "../../page";
import { to } from "../../route";
import { Load, Page } from "../../layout";
import { Details } from "./details";
import { ModelPicker } from "./picker";
import { Status } from "./status";
import { Health } from "../../timeline";
import { Time } from "../../time";

// Connection is the page of one connection: its status, details and models.
export function Connection({ machine, args: [id] }: PageProps) {
  const row = useLoad(() => machine.get<ConnectionRow>(`/providers/${encodeURIComponent(id)}`), [machine, id]);
  const catalog = useLoad(() => machine.list<ProviderRow>("/catalog/providers"), [machine]);
  const known = catalog.data?.find((p) => p.id === row.data?.provider);
  const provider = row.data ? providerName(row.data.provider, catalog.data ?? []) : "";
  return (
    <Page
      title={row.data ? row.data.name || provider : "Account"}
      actions={
        <a class="button" href={to(machine.id, "providers")}>
          Back to providers
        </a>
      }
      intro={
        row.data && (
          <>
            {provider} · {keyText(row.data)} · changed <Time at={row.data.updatedAt} />
          </>
        )
      }
    >
      <Load of={row} what="account" rows={4}>
        {(c) => (
          <>
            <Status machine={machine} c={c} known={known} onChange={row.reload} />
            <Health machine={machine} filter={`connection=${encodeURIComponent(c.id)}`} what={c.name || provider} />
            <Details
              machine={machine}
              c={c}
              known={known}
              title={c.name || provider}
              onChange={row.set}
              onReload={row.reload}
            />
            <ModelPicker machine={machine} c={c} onChange={row.set} onReload={row.reload} />
          </>
        )}
      </Load>
    </Page>
  );
}
