import { Finish } from "../../finish";
import type { InvitationRow, MemberTemplate, PersonRow } from "../../api-types";
import { Code } from "../../code";
import { Dialog, type Question } from "../../dialog";
import { useDraft } from "../../draft";
import { losing } from "../../dialog";
import { ModelNames, Text } from "../../forms";
import { useAction } from "../../hooks";
import { roleCan } from "../../rolecan";
import { type Role, roleNames } from "../../roles";
import { Time } from "../../time";
import { Button, Field, Notice, Options } from "../../ui";
import { windowNames } from "../budgets/windows";
import type { Machine } from "../../api";

// numbers are those of a template: their field, label, hint and largest value.
const numbers = [
  ["keys", "Number of keys", "Default: 3.", 100],
  ["days", "Keys expire after (days)", "Leave empty for no expiry.", 3650],
  ["rpm", "Requests per minute", "Of each key.", 1_000_000],
  ["dailyMax", "Requests per day", "Of each key.", 1_000_000_000],
  ["tpm", "Tokens per minute", "Of each key.", 1_000_000_000],
  ["maxParallel", "Concurrent requests", "Of each key.", 1_000_000],
] as const;

type Form = Record<"note" | "models" | "budgetUsd" | (typeof numbers)[number][0], string> & {
  role: Role;
  budgetWindow: string;
};

// formOf returns the form of a person, or of an invitation.
function formOf(of?: PersonRow): Form {
  const t: MemberTemplate = of?.template ?? {};
  const text = (n?: number) => (n ? String(n) : "");
  return {
    note: "",
    role: of?.role ?? "member",
    models: (t.models ?? []).join("\n"),
    budgetUsd: text(t.budgetUsd),
    budgetWindow: t.budgetWindow ?? "month",
    keys: text(t.keys),
    days: text(t.days),
    rpm: text(t.rpm),
    dailyMax: text(t.dailyMax),
    tpm: text(t.tpm),
    maxParallel: text(t.maxParallel),
  };
}

// bodyOf returns the role and the template of a form.
function bodyOf(f: Form) {
  if (f.role !== "member") return { role: f.role };
  const models = f.models.split(/[\s,]+/).filter(Boolean);
  const template: Record<string, unknown> = models.length > 0 ? { models } : {};
  for (const [field] of numbers) if (f[field]) template[field] = Number(f[field]);
  if (f.budgetUsd) {
    template.budgetUsd = Number(f.budgetUsd);
    template.budgetWindow = f.budgetWindow;
  }
  return { role: f.role, template };
}

function Fields({ form, put }: { form: Form; put: (part: Partial<Form>) => void }) {
  return (
    <>
      <Field label="Role" hint={`Can ${roleCan[form.role]}.`}>
        <select value={form.role} onChange={(e) => put({ role: e.currentTarget.value as Role })}>
          <Options of={Object.entries(roleNames)} />
        </select>
      </Field>
      {form.role === "member" && (
        <>
          <div class="grid">
            <Field label="Budget (US dollars)" hint="For all keys together. Leave empty for none.">
              <input
                type="number"
                min={0.000001}
                step="any"
                value={form.budgetUsd}
                onInput={(e) => put({ budgetUsd: e.currentTarget.value })}
              />
            </Field>
            <Field label="Budget resets">
              <select
                value={form.budgetWindow}
                disabled={form.budgetUsd === ""}
                onChange={(e) => put({ budgetWindow: e.currentTarget.value })}
              >
                <Options of={Object.entries(windowNames)} />
              </select>
            </Field>
          </div>
          <Field label="Allowed models" hint="One per line; combo names work too. Leave empty to allow all.">
            <ModelNames value={form.models} onText={(models) => put({ models })} />
          </Field>
          <details>
            <summary>Limits of the keys</summary>
            <div class="grid">
              {numbers.map(([field, label, hint, most]) => (
                <Field key={field} label={label} hint={hint}>
                  <input
                    type="number"
                    min={1}
                    max={most}
                    value={form[field]}
                    onInput={(e) => put({ [field]: e.currentTarget.value })}
                  />
                </Field>
              ))}
            </div>
          </details>
        </>
      )}
    </>
  );
}

// Grant is the form of an invitation, or of the role of someone who is there.
export function Grant({
  machine,
  of,
  onInvited,
  onSaved,
  onClose,
}: {
  machine: Machine;
  /** absent for an invitation */
  of?: PersonRow;
  onInvited: (i: InvitationRow) => Promise<void>;
  onSaved: () => Promise<void>;
  onClose: () => void;
}) {
  const [form, setForm, draft] = useDraft(`person ${machine.id} ${of?.id ?? ""}`, formOf(of));
  const put = (part: Partial<Form>) => setForm((f) => ({ ...f, ...part }));
  const act = useAction();
  const submit = (e: Event) => {
    e.preventDefault();
    void act.run(async () => {
      const body = bodyOf(form);
      if (of) {
        await machine.put(`/people/${of.id}`, body);
        draft.clear();
        return onSaved();
      }
      const made = await machine.post<InvitationRow>("/invitations", {
        ...body,
        ...(form.note.trim() && { note: form.note.trim() }),
      });
      draft.clear();
      await onInvited(made);
    });
  };
  return (
    <Dialog title={of ? `Change ${of.name || of.id}` : "Invite a person"} ask={losing(draft)} onClose={onClose}>
      <form onSubmit={submit}>
        {!of && (
          <Field label="For" hint="A note for you, such as a name or an e-mail address. No mail is sent.">
            <Text max={200} value={form.note} onText={(note) => put({ note })} />
          </Field>
        )}
        <Fields form={form} put={put} />
        {of?.byRule && (
          <Notice>
            The identity provider has a rule for this person, too. Of both roles the higher one counts; removing the
            person overrides the rule.
          </Notice>
        )}
        <Finish
          of={act}
          action={of ? "Save" : "Create link"}
          changes={of && `/people/${of.id}`}
          disabled={!!of && !draft.dirty}
          draft={draft}
          onCancel={onClose}
        />
      </form>
    </Dialog>
  );
}

const copied: Question = {
  text: "Have you copied the link? You won’t see it again.",
  action: "Close without copying",
};

// Link shows the link of an invitation, which cannot be shown again.
export function Link({ of, onClose }: { of: InvitationRow; onClose: () => void }) {
  const { origin, hostname } = new URL(of.link ?? "", location.href);
  return (
    <Dialog title={of.person ? "Sign-in link" : "Invitation"} ask={copied} onClose={onClose}>
      <Notice kind="warn">
        Send this link only to this person. It works once, until <Time at={of.expiresAt} />.
      </Notice>
      <Code label="Link" text={of.link ?? ""} />
      {/^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname) && (
        <p class="muted">
          {origin} is this computer only. For someone elsewhere, replace it with the address that they use;{" "}
          <code>PUBLIC_URL</code> does so in every link.
        </p>
      )}
      <Button kind="main" onClick={onClose}>
        Done
      </Button>
    </Dialog>
  );
}
