import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Machine } from "../../api";
import type { SetupCommand, ToolRow } from "../../api-types";
import { now } from "../../clock";
import { Code } from "../../code";
import { Tabs } from "../../tabs";
import { useAction } from "../../hooks";
import { Section } from "../../layout";
import { Button, ErrorBox, Notice } from "../../ui";
import { Time } from "../../time";

type Shell = "sh" | "ps1";

const shells: [Shell, string][] = [
  ["sh", "macOS, Linux"],
  ["ps1", "Windows"],
];

// How long a command works, in ms (docs/clients.md): measured here, because the
// clock of this computer may differ from the gateway's.
const lifetime = 5 * 60_000;

// Command creates and copies the command that sets a tool up, and shows it until it
// expires.
export function Command({
  machine,
  tool,
  model,
  small,
  call,
  atOnce,
  children,
}: {
  machine: Machine;
  tool: ToolRow;
  model: string;
  small: string;
  /** id of the tool's last call that succeeded: another one than before means that the command was used */
  call: string;
  /** copies the command as soon as it is shown */
  atOnce?: boolean;
  children?: ComponentChildren;
}) {
  const [created, setCreated] = useState<SetupCommand | null>(null),
    [before, setBefore] = useState(""),
    [until, setUntil] = useState(0),
    [expired, setExpired] = useState(false),
    [copied, setCopied] = useState(false),
    [shell, setShell] = useState<Shell>(navigator.userAgent.includes("Windows") ? "ps1" : "sh");
  const act = useAction();
  const create = () =>
    act.run(async () => {
      const body = { tool: tool.id, ...(model && { model }), ...(small && { smallModel: small }) };
      const next = await machine.post<SetupCommand>("/setup", body);
      setCreated(next);
      setBefore(call);
      setUntil(now() + lifetime);
      setExpired(false);
      setCopied(
        await navigator.clipboard.writeText(next.command[shell]).then(
          () => true,
          () => false,
        ),
      );
    });
  useEffect(() => {
    if (atOnce) void create();
  }, []);
  useEffect(() => {
    if (!created) return;
    const timer = setTimeout(() => setExpired(true), lifetime);
    return () => clearTimeout(timer);
  }, [created]);
  useEffect(() => {
    if (call === before) return;
    setCreated(null);
    setExpired(false);
  }, [call]);
  const undo = `${location.origin}/setup/${tool.id}.${shell}`;
  return (
    <Section
      title={atOnce ? `Connect ${tool.name}` : "With one command"}
      intro={
        <>
          Creates a key and writes {tool.files?.map((f, i) => [i > 0 && " and ", <code key={f}>{f}</code>])}. The rest
          of {tool.files?.length === 1 ? "the file" : "the files"} stays.
        </>
      }
    >
      <div class="stack">
        {children}
        <Tabs label="System" items={shells} value={shell} onPick={setShell} />
        {act.error && <ErrorBox>{act.error}</ErrorBox>}
        <p role="status">{created && !expired && copied && "Copied. Paste it into a terminal."}</p>
        {created && !expired && (
          <>
            <Code label={`Command for ${tool.name}`} text={created.command[shell]} />
            <p class="muted small">
              Works once, until <Time at={until} as="time" />. Running it creates the key.
            </p>
            <p class="muted small">Undo:</p>
            <Code
              label="Command to undo"
              text={
                shell === "sh"
                  ? `curl -fsSL '${undo}' | sh -s -- --undo`
                  : `& ([scriptblock]::Create((irm '${undo}'))) -Undo`
              }
            />
          </>
        )}
        {expired && <Notice kind="warn">The command has expired. Create a new one.</Notice>}
        <div class="row">
          <Button kind={created && !expired ? undefined : "main"} busy={act.busy} onClick={() => void create()}>
            {created ? "Copy a new command" : "Copy command"}
          </Button>
        </div>
      </div>
    </Section>
  );
}
