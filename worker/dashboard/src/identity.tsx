import { useState } from "preact/hooks";
import { byPasskey, call } from "./api";
import type { AuditRow, MachineRow } from "./api-types";
import { Code } from "./code";
import { Confirm } from "./confirm";
import { Dialog, losing } from "./dialog";
import { useDraft } from "./draft";
import { Finish } from "./finish";
import { Restored, Text } from "./forms";
import { useAction, useLoad } from "./hooks";
import {
  bodyOf,
  emptyForm,
  type Form,
  formOf,
  type Preset,
  type Provider,
  presets,
  type RuleForm,
} from "./identity/presets";
import { ActionsHead, Load, Page, Table } from "./layout";
import { actionText, actorText, fieldText, targetText } from "./pages/settings/words";
import { roles } from "./roles";
import { Time } from "./time";
import { toast } from "./toast";
import { Badge, Button, Cut, Empty, ErrorBox, Field, Notice } from "./ui";

interface List {
  data: Provider[];
  redirectUri?: string;
}

interface Tested {
  provider: Provider;
  ok: boolean;
  findings: string[];
}

const path = "/api/identity-providers";

// Identity is the operator's page of the identity providers by which people sign in.
export default function Identity({ machines }: { machines: MachineRow[] }) {
  const list = useLoad(() => call<List>("GET", path), []);
  const [edited, edit] = useState<{ of: Provider | null } | null>(null);
  const [removing, setRemoving] = useState<Provider | null>(null);
  const [ending, setEnding] = useState(false);
  const [tested, setTested] = useState<Tested | null>(null);
  const remove = useAction(),
    end = useAction(),
    turnOn = useAction(),
    test = useAction();
  const doTest = (provider: Provider) =>
    test.run(async () => {
      setTested({ provider, ...(await call<Omit<Tested, "provider">>("POST", `${path}/${provider.id}/test`, {})) });
    });
  const usePasskeys = () =>
    turnOn.run(async () => {
      await call("POST", path, { kind: byPasskey, name: "Passkeys" });
      toast("Passkeys are on. Invitations can be accepted with one.");
      await list.reload();
    });
  const doRemove = (p: Provider) =>
    remove.run(async () => {
      await call("DELETE", `${path}/${p.id}`);
      setRemoving(null);
      toast(`Removed ${p.name}.`);
      await list.reload();
    });
  const doEnd = () =>
    end.run(async () => {
      await call("DELETE", "/api/sessions");
      setEnding(false);
      toast("All sessions of people have ended.");
    });
  return (
    <Page
      title="Sign-in"
      intro="The identity providers by which people sign in. The operator token always works."
      actions={
        <>
          <Button onClick={() => setEnding(true)}>End all sessions</Button>
          {list.data && !list.data.data.some((p) => p.kind === byPasskey) && (
            <Button busy={turnOn.busy} onClick={() => void usePasskeys()}>
              Turn on passkeys
            </Button>
          )}
          <Button kind="main" icon="plus" onClick={() => edit({ of: null })}>
            Add identity provider
          </Button>
        </>
      }
    >
      {(turnOn.error || test.error) && <ErrorBox>{turnOn.error || test.error}</ErrorBox>}
      <Load of={list} what="identity providers">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No identity providers yet">
              <p>
                People sign in with Google, Entra ID, Okta, Keycloak or any issuer of OpenID Connect. Without one they
                are invited, and sign in with passkeys or a personal token.
              </p>
            </Empty>
          ) : (
            <Table label="Identity providers" stacked>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Issuer</th>
                  <th>Rules</th>
                  <ActionsHead />
                </tr>
              </thead>
              <tbody>
                {data.map((p) => (
                  <tr key={p.id}>
                    <th scope="row">
                      <Cut>{p.name}</Cut> {p.kind && p.kind !== byPasskey && <Badge>{p.kind}</Badge>}
                    </th>
                    <td class="full" data-label="Issuer">
                      <Cut>{p.issuer}</Cut>
                    </td>
                    <td data-label="Rules">
                      {p.kind === byPasskey
                        ? "By invitation"
                        : p.rules.length || <Badge kind="warn">None: no one has access</Badge>}
                    </td>
                    <td class="num full">
                      <Button aria-label={`Test ${p.name}`} busy={test.busy} onClick={() => void doTest(p)}>
                        Test
                      </Button>{" "}
                      {p.kind !== byPasskey && (
                        <Button aria-label={`Edit ${p.name}`} onClick={() => edit({ of: p })}>
                          Edit
                        </Button>
                      )}{" "}
                      <Button kind="quiet" aria-label={`Remove ${p.name}`} onClick={() => setRemoving(p)}>
                        Remove
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
          )
        }
      </Load>
      {tested && (
        <Notice kind={!tested.ok || tested.findings.length ? "warn" : "good"}>
          <bdi>{tested.provider.name}</bdi>:{" "}
          {tested.findings.join(" ") ||
            (tested.provider.kind === byPasskey
              ? "people can use them at this address."
              : "its addresses and keys can be used. Sign in with it to test the client.")}
        </Notice>
      )}
      <SignIns />
      {edited && (
        <Editor
          of={edited.of}
          redirectUri={list.data?.redirectUri ?? ""}
          machines={machines}
          onDone={async (name) => {
            edit(null);
            toast(`Saved ${name}.`);
            await list.reload();
          }}
          onClose={() => edit(null)}
        />
      )}
      {removing && (
        <Confirm
          title={`Remove ${removing.name}?`}
          action="Remove provider"
          of={remove}
          onDo={() => void doRemove(removing)}
          onClose={() => setRemoving(null)}
        >
          <p>People can no longer sign in with it. Open sessions last up to 12 hours unless you end them.</p>
        </Confirm>
      )}
      {ending && (
        <Confirm
          title="End all sessions?"
          action="End all sessions"
          of={end}
          onDo={() => void doEnd()}
          onClose={() => setEnding(false)}
        >
          <p>Everyone but the operator must sign in again.</p>
        </Confirm>
      )}
    </Page>
  );
}

// SignIns lists the newest sign-ins.
function SignIns() {
  const list = useLoad(() => call<{ data: AuditRow[]; names: Record<string, string> }>("GET", "/api/sign-ins"), []);
  return (
    <section class="stack">
      <h2>Audit log of the gateway</h2>
      <Load of={list} what="sign-ins">
        {({ data, names }) =>
          data.length === 0 ? (
            <Empty title="No sign-ins yet" />
          ) : (
            <Table label="Audit log of the gateway" stacked>
              <thead>
                <tr>
                  <th>Time</th>
                  <th>Who</th>
                  <th>What</th>
                  <th>Details</th>
                </tr>
              </thead>
              <tbody>
                {data.slice(0, 20).map((r) => (
                  <tr key={r.seq}>
                    <th scope="row">
                      <Time at={r.at} />
                    </th>
                    <td data-label="Who">
                      <Cut>{names[r.actor] || actorText(r.actor, names)}</Cut>
                    </td>
                    <td data-label="What">
                      {actionText(r.action)} <Cut>{targetText(r, names)}</Cut>
                    </td>
                    <td class="full" data-label="Details">
                      {r.fields?.map(fieldText).join(", ")}
                    </td>
                  </tr>
                ))}
              </tbody>
            </Table>
          )
        }
      </Load>
    </section>
  );
}

function Editor({
  of: p,
  redirectUri,
  machines,
  onDone,
  onClose,
}: {
  of: Provider | null;
  redirectUri: string;
  machines: MachineRow[];
  onDone: (name: string) => Promise<void>;
  onClose: () => void;
}) {
  const origin = redirectUri.replace(/\/oidc\/callback$/, "") || location.origin;
  const [form, setForm, draft] = useDraft<Form>(
    `identity provider ${p?.id ?? ""}`,
    p ? formOf(p) : emptyForm(presets[0], origin),
    (f) => ({ ...f, secret: "" }),
  );
  const put = (part: Partial<Form>) => setForm((f) => ({ ...f, ...part }));
  const act = useAction();
  const preset = presets.find((x) => x.id === form.preset) as Preset;
  const submit = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      const body = bodyOf(form);
      await (p ? call("PUT", `${path}/${p.id}`, body) : call("POST", path, body));
      draft.clear();
      await onDone(body.name);
    });
  };
  const setRule = (i: number, part: Partial<RuleForm>) =>
    put({ rules: form.rules.map((r, at) => (at === i ? { ...r, ...part } : r)) });
  return (
    <Dialog title={p ? `Edit ${p.name}` : "Add identity provider"} drawer onClose={onClose} ask={losing(draft)}>
      <form onSubmit={submit}>
        <Restored draft={draft} note="The secret is not stored." />
        {!p && (
          <Field label="Provider">
            <select
              value={form.preset}
              onChange={(e) =>
                setForm(emptyForm(presets.find((x) => x.id === e.currentTarget.value) ?? presets[0], origin))
              }
            >
              {presets.map((x) => (
                <option key={x.id} value={x.id}>
                  {x.title}
                </option>
              ))}
            </select>
          </Field>
        )}
        <p class="muted small">{preset.note}</p>
        {!preset.kind && (
          <div class="field">
            <span>Redirect URI to register at the provider</span>
            <Code text={redirectUri || `${origin}/oidc/callback`} label="Redirect URI" />
          </div>
        )}
        <Field label="Name" hint="Shown on the sign-in button.">
          <Text value={form.name} onText={(name) => put({ name })} max={100} required />
        </Field>
        <Field label="Issuer" hint={`Exactly as in its discovery document. Form: ${preset.issuer}`}>
          <Text value={form.issuer} onText={(issuer) => put({ issuer })} max={500} required />
        </Field>
        <Field label={preset.client ?? "Client ID"}>
          <Text value={form.clientId} onText={(clientId) => put({ clientId })} max={500} required />
        </Field>
        {!preset.kind && (
          <>
            <Field
              label="Client secret"
              hint={p?.hasSecret ? "Leave it empty to keep the stored one." : "Empty for a public client."}
            >
              <input
                type="password"
                autocomplete="off"
                value={form.secret}
                onInput={(e) => put({ secret: e.currentTarget.value })}
              />
            </Field>
            <Field label="Scopes" hint="In addition to openid. Default: email and profile.">
              <Text value={form.scopes} onText={(scopes) => put({ scopes })} max={500} />
            </Field>
          </>
        )}
        <h3>Rules</h3>
        <p class="muted small">
          Someone whose claim has exactly the value gets the role. The highest role counts, and without one there is no
          access. Write &gt; between the names of a path.
        </p>
        {form.rules.map((r, i) => (
          <fieldset key={i}>
            <legend>Rule {i + 1}</legend>
            <Field label="Claim">
              <Text value={r.claim} onText={(claim) => setRule(i, { claim })} max={300} />
            </Field>
            <Field label="Value">
              <Text value={r.value} onText={(value) => setRule(i, { value })} max={300} placeholder={preset.value} />
            </Field>
            <Field label="Role">
              <select value={r.role} onChange={(e) => setRule(i, { role: e.currentTarget.value })}>
                {roles.map((role) => (
                  <option key={role}>{role}</option>
                ))}
              </select>
            </Field>
            <Field label="Machine">
              <select value={r.machine} onChange={(e) => setRule(i, { machine: e.currentTarget.value })}>
                <option value="*">All machines</option>
                {machines.map((m) => (
                  <option key={m.machineId} value={m.machineId}>
                    {m.name || m.machineId}
                  </option>
                ))}
                {r.machine !== "*" && !machines.some((m) => m.machineId === r.machine) && (
                  <option value={r.machine}>{r.machine}</option>
                )}
              </select>
            </Field>
            <Button
              kind="quiet"
              aria-label={`Remove rule ${i + 1}`}
              onClick={() => put({ rules: form.rules.filter((_, at) => at !== i) })}
            >
              Remove rule
            </Button>
          </fieldset>
        ))}
        <Button
          icon="plus"
          onClick={() =>
            put({ rules: [...form.rules, { claim: preset.claim, value: "", role: "viewer", machine: "*" }] })
          }
        >
          Add rule
        </Button>
        <Finish of={act} action="Save" draft={draft} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
