import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { AuditRow, List } from "../../api-types";
import { when } from "../../format";
import { useAction, useLoad } from "../../hooks";
import { Load, Section, Table } from "../../layout";
import { Badge, Button, Empty, ErrorBox } from "../../ui";

// AuditPage is a page of GET /api/audit.
interface AuditPage extends List<AuditRow> {
  has_more: boolean;
  /** with verify: whether the hash chain is intact */
  chain?: { ok: boolean; brokenAt?: number };
}

const perPage = 50;

// Audit is the log of all changes: who changed what and when, without values.
export function Audit({ machine }: { machine: Machine }) {
  const list = useLoad(() => machine.get<AuditPage>(`/audit?limit=${perPage}&verify=true`), [machine]);
  const [older, setOlder] = useState<AuditRow[]>([]),
    [more, setMore] = useState(true);
  const act = useAction();
  const load = (from: number) =>
    act.run(async () => {
      const page = await machine.get<AuditPage>(`/audit?limit=${perPage}&before=${from}`);
      setOlder((all) => [...all, ...page.data]);
      setMore(page.has_more);
    });
  return (
    <Section title="Audit log" intro="Who changed what. Entries are hash-chained, so tampering is detected.">
      <Load of={list} what="audit log" rows={2}>
        {({ data, has_more, chain }) => {
          const all = [...data, ...older];
          if (all.length === 0) return <Empty title="No changes yet" />;
          return (
            <>
              {chain && (
                <p>
                  {chain.ok ? (
                    <Badge kind="good">Verified</Badge>
                  ) : (
                    <Badge kind="bad">Altered at entry {chain.brokenAt}</Badge>
                  )}
                </p>
              )}
              <Table label="Changes" stacked>
                <thead>
                  <tr>
                    <th scope="col">Time</th>
                    <th scope="col">User</th>
                    <th scope="col">Action</th>
                    <th scope="col">Fields</th>
                  </tr>
                </thead>
                <tbody>
                  {all.map((e) => (
                    <tr key={e.seq}>
                      <td class="when">{when(e.at)}</td>
                      <td>{e.actor}</td>
                      <td class="full">
                        <code>{e.action}</code> {e.target && <span class="muted">{e.target}</span>}
                      </td>
                      <td class="full" data-label={e.fields && "Fields"}>
                        {e.fields?.join(", ")}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </Table>
              {has_more && more && (
                <Button busy={act.busy} onClick={() => void load(all[all.length - 1].seq)}>
                  Load more
                </Button>
              )}
              {act.error && <ErrorBox>{act.error}</ErrorBox>}
            </>
          );
        }}
      </Load>
    </Section>
  );
}
