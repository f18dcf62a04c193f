import { useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { KeyNetwork, KeyRow, List } from "../../api-types";
import { number } from "../../format";
import { useLoad } from "../../hooks";
import { Load, Table } from "../../layout";
import { Time } from "../../time";
import { Notice } from "../../ui";

const manyNetworks = 3; // as storage.ManyNetworks

// Networks lists the networks that a key was used from, once it is opened.
export function Networks({ machine, k }: { machine: Machine; k: KeyRow }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Networks, last 30 days</summary>
      {open && <Shown machine={machine} k={k} />}
    </details>
  );
}

function Shown({ machine, k }: { machine: Machine; k: KeyRow }) {
  const list = useLoad(
    () => machine.get<List<KeyNetwork> & { newToday: number }>(`/keys/${k.id}/networks`),
    [machine, k.id],
  );
  return (
    <Load of={list} what="networks" rows={2}>
      {({ data, newToday }) =>
        data.length === 0 ? (
          <p class="muted">No networks are stored. The setting “Log client networks” may be off.</p>
        ) : (
          <>
            {newToday >= manyNetworks && (
              <Notice kind="warn">{newToday} new networks today. If they are not yours, rotate the key.</Notice>
            )}
            <Table label="Networks">
              <thead>
                <tr>
                  <th>Network</th>
                  <th>Country</th>
                  <th>Tools</th>
                  <th class="num">Requests</th>
                  <th>First seen</th>
                  <th>Last seen</th>
                </tr>
              </thead>
              <tbody>
                {data.map((n) => (
                  <tr key={n.network}>
                    <th scope="row">
                      <code>{n.network}</code>
                    </th>
                    <td>{n.country ?? "–"}</td>
                    <td>{(n.tools ?? []).join(", ")}</td>
                    <td class="num">{number(n.requests)}</td>
                    <td>
                      <Time at={n.firstAt} />
                    </td>
                    <td>
                      <Time at={n.lastAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
          </>
        )
      }
    </Load>
  );
}
