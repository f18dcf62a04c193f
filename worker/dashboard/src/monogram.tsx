// Monogram stands for something that has no picture: two letters of its name in a colour
// of its own.
export function Monogram({ name, mark }: { name: string; mark: string }) {
  return (
    <span class="monogram" aria-hidden="true" style={{ "--hue": hue(name) }}>
      {mark}
    </span>
  );
}

// marksOf returns two letters for each name, no two of them alike: the first ones of its
// words, else its first letter with the next that is free.
export function marksOf(names: string[]): Map<string, string> {
  const marks = new Map<string, string>();
  const used = new Set<string>();
  for (const name of names) {
    const words = name.match(/\p{Lu}?[\p{Ll}\p{N}]+|\p{Lu}+/gu) ?? [name];
    const [first, ...rest] = words.join("");
    const last = words.length > 1 ? words.at(-1)![0].toUpperCase() : "";
    const free = [last, ...rest].map((letter) => first + letter).find((m) => m.length === 2 && !used.has(m));
    marks.set(name, free ?? first);
    used.add(free ?? first);
  }
  return marks;
}

// hue returns the hue of a name, in degrees.
function hue(name: string): number {
  let h = 7;
  for (const c of name) h = (h * 31 + c.codePointAt(0)!) % 360;
  return h;
}
