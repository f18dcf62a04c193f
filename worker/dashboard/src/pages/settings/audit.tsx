import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import { useAction, useLoad } from "../../hooks";
import { Badge, Button, Empty, ErrorBox, Load, Section, Table, when } from "../../ui";

interface Entry {
  seq: number;
  at: number;
  actor: string;
  action: string;
  target?: string;
  fields?: string[];
}
interface Answer {
  data: Entry[];
  has_more: boolean;
  chain?: { ok: boolean; brokenAt?: number };
}

const page = 50;

// Audit is the record of every change: who, what, when; never a value.
export function Audit({ machine }: { machine: Machine }) {
  const list = useLoad(() => machine.get<Answer>(`/audit?limit=${page}&verify=true`), [machine]);
  const [older, setOlder] = useState<Entry[]>([]),
    [more, setMore] = useState(true);
  const act = useAction();
  const load = (from: number) =>
    act.run(async () => {
      const got = await machine.get<Answer>(`/audit?limit=${page}&before=${from}`);
      setOlder((all) => [...all, ...got.data]);
      setMore(got.has_more);
    });
  return (
    <Section
      title="Record of changes"
      intro="Who changed what. Each entry is bound to the one before it, so that none can be altered unseen."
    >
      <Load of={list} what="the record" rows={2}>
        {({ data, has_more, chain }) => {
          const all = [...data, ...older];
          if (all.length === 0) return <Empty title="Nothing has been changed yet" />;
          return (
            <>
              {chain && (
                <p>
                  {chain.ok ? (
                    <Badge kind="good">Unaltered</Badge>
                  ) : (
                    <Badge kind="bad">Altered at entry {chain.brokenAt}</Badge>
                  )}
                </p>
              )}
              <Table label="Changes" stacked>
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Who</th>
                    <th scope="col">What</th>
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
                  Show older ones
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
