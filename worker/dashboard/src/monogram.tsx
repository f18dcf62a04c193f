// Monogram stands for something that has no picture: the first letters of its name in
// a colour of its own.
export function Monogram({ name }: { name: string }) {
  return (
    <span class="monogram" aria-hidden="true" style={{ "--hue": hue(name) }}>
      {name.replace(/[^\p{L}\p{N}]/gu, "").slice(0, 2)}
    </span>
  );
}

// hue returns the hue of a name, in degrees.
function hue(name: string): number {
  let h = 7;
  for (const c of name) h = (h * 31 + c.codePointAt(0)!) % 360;
  return h;
}
