// Texts to copy.
import { useState } from "preact/hooks";
import { Button } from "./ui";

export function Copy({ text, label = "Copy", what }: { text: string; label?: string; what?: string }) {
  const [result, setResult] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setResult("Copied");
    } catch {
      setResult("Copying failed. Select the text and copy it.");
    }
    setTimeout(() => setResult(""), 2500);
  };
  return (
    <span class="row tight">
      <Button icon="copy" aria-label={what && `Copy ${what}`} onClick={() => void copy()}>
        {label}
      </Button>
      <span class="muted" role="status">
        {result}
      </span>
    </span>
  );
}

// Code is a text to copy; what names it among several.
export function Code({ text, label, what }: { text: string; label: string; what?: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
      <Copy text={text} what={what} />
    </div>
  );
}
