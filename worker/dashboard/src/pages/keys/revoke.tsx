import type { Machine } from "../../api";
import type { KeyRow } from "../../api-types";
import { now } from "../../clock";
import { Confirm } from "../../confirm";
import { useAction } from "../../hooks";
import { keyName } from "../../names";
import { toast } from "../../toast";
import { Notice } from "../../ui";

// Revoke asks before it revokes a key.
export function Revoke({
  machine,
  k,
  keys,
  own,
  onDone,
  onClose,
}: {
  machine: Machine;
  k: KeyRow;
  keys: KeyRow[];
  own: boolean;
  onDone: () => Promise<void>;
  onClose: () => void;
}) {
  const act = useAction();
  const at = now();
  // lastOf reports whether no other valid key has a scope.
  const lastOf = (scope: string) =>
    k.scopes.includes(scope) &&
    !keys.some((o) => o.id !== k.id && o.scopes.includes(scope) && !o.pausedAt && (!o.expiresAt || o.expiresAt > at));
  const revoke = () =>
    act.run(async () => {
      await machine.del(`/keys/${k.id}`);
      toast(`Revoked ${keyName(k)}.`);
      await onDone();
    });
  return (
    <Confirm title={`Revoke ${keyName(k)}?`} action="Revoke key" of={act} onDo={() => void revoke()} onClose={onClose}>
      <p>Apps that use this key stop working within a minute. This cannot be undone.</p>
      {own && <Notice kind="warn">You are signed in with this key. Revoking it signs you out.</Notice>}
      {lastOf("manage") && (
        <Notice kind="warn">
          This is the last key that can manage this machine. Afterwards only the operator can manage it.
        </Notice>
      )}
      {lastOf("data") && (
        <Notice kind="warn">This is the last key that can call models. Afterwards no app can use this machine.</Notice>
      )}
    </Confirm>
  );
}
