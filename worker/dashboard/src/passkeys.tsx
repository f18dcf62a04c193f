import { useState } from "preact/hooks";
import { call } from "./api";
import type { List } from "./api-types";
import { Confirm } from "./confirm";
import { useAction, useLoad } from "./hooks";
import { ActionsHead, Load, Page, Table } from "./layout";
import { Name } from "./naming";
import { addPasskey } from "./passkey";
import { Time } from "./time";
import { toast } from "./toast";
import { Button, Cut, Empty, ErrorBox } from "./ui";

interface Passkey {
  id: string;
  name: string;
  createdAt: number;
  usedAt?: number;
}

const path = "/api/passkeys";

// Passkeys is the page of the passkeys that the person who is signed in has, #/passkeys.
export default function Passkeys() {
  const list = useLoad(() => call<List<Passkey>>("GET", path), []);
  const [renaming, setRenaming] = useState<Passkey | null>(null);
  const [deleting, setDeleting] = useState<Passkey | null>(null);
  const add = useAction(),
    remove = useAction();
  const doAdd = () =>
    add.run(async () => {
      await addPasskey();
      toast("Passkey added.");
      await list.reload();
    });
  const rename = async (p: Passkey, name: string) => {
    await call("PUT", `${path}/${p.id}`, { name });
    setRenaming(null);
    await list.reload();
  };
  const doDelete = (p: Passkey) =>
    remove.run(async () => {
      await call("DELETE", `${path}/${p.id}`);
      setDeleting(null);
      toast(`Deleted ${p.name}.`);
      await list.reload();
    });
  return (
    <Page
      title="Passkeys"
      intro="Sign in with your fingerprint, face, PIN or security key."
      actions={
        <Button kind="main" icon="plus" busy={add.busy} onClick={() => void doAdd()}>
          Add passkey
        </Button>
      }
    >
      {add.error && <ErrorBox>{add.error}</ErrorBox>}
      <Load of={list} what="passkeys">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No passkeys yet">
              <p>Add one to sign in without a token.</p>
            </Empty>
          ) : (
            <Table label="Passkeys" stacked>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Created</th>
                  <th>Last used</th>
                  <ActionsHead />
                </tr>
              </thead>
              <tbody>
                {data.map((p) => (
                  <tr key={p.id}>
                    <th scope="row">
                      <Cut>{p.name}</Cut>
                    </th>
                    <td class="when" data-label="Created">
                      <Time at={p.createdAt} />
                    </td>
                    <td class="when" data-label="Last used">
                      {p.usedAt ? <Time at={p.usedAt} /> : "Not yet"}
                    </td>
                    <td class="num full">
                      <Button kind="quiet" aria-label={`Rename ${p.name}`} onClick={() => setRenaming(p)}>
                        Rename
                      </Button>{" "}
                      <Button
                        kind="quiet"
                        aria-label={`Delete ${p.name}`}
                        onClick={() => {
                          remove.clear();
                          setDeleting(p);
                        }}
                      >
                        Delete
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
          )
        }
      </Load>
      {renaming && (
        <Name
          title={`Rename ${renaming.name}`}
          hint="The device or password manager that has it."
          draft={`passkey ${renaming.id}`}
          name={renaming.name}
          action="Rename"
          onDo={(name) => rename(renaming, name)}
          onClose={() => setRenaming(null)}
        />
      )}
      {deleting && (
        <Confirm
          title={`Delete ${deleting.name}?`}
          action="Delete passkey"
          of={remove}
          onDo={() => void doDelete(deleting)}
          onClose={() => setDeleting(null)}
        >
          <p>
            You can no longer sign in with it. Open sessions continue: <em>Sign out everywhere</em> ends them. Delete it
            on the device too.
          </p>
        </Confirm>
      )}
    </Page>
  );
}
