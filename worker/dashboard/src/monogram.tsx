import type { Mark } from "./marks";

// Monogram shows the mark of something that has no picture.
export function Monogram({ of }: { of?: Mark }) {
  return (
    <span class="monogram" aria-hidden="true" style={{ "--hue": of?.hue ?? 0 }}>
      {of?.letters}
    </span>
  );
}
