// marksOf returns at most two letters for each row of a list, by its id: the mark of what has no
// picture. No two are the same in upper or lower case: those given as initials are kept if they are
// free, else it is the first letter of the name with the first of its last word, then with another
// capital of its first word or the next letter that is free; then alone; then two later letters.
export function marksOf(rows: { id: string; name: string; initials?: string }[]): Map<string, string> {
  const used = new Set<string>();
  return new Map(
    rows.map(({ id, name, initials }) => {
      const words = name.match(/\p{Lu}?[\p{Ll}\p{N}]+|\p{Lu}+/gu) ?? [name];
      const [first, ...rest] = words.join("");
      const capitals =
        name
          .split(/[\s,]/)[0]
          .slice(1)
          .match(/\p{Lu}/gu) ?? [];
      const last = words.length > 1 ? [words.at(-1)![0].toUpperCase()] : [];
      const later = rest.flatMap((letter, i) => rest.slice(i + 1).map((next) => letter + next));
      const own = [
        ...[...last, ...capitals, ...rest].map((letter) => first + letter),
        first,
        ...later,
        ...[..."23456789"].map((n) => first + n),
      ];
      const letters = [...(initials ? [initials] : []), ...own].find((m) => !used.has(m.toLowerCase())) ?? first;
      used.add(letters.toLowerCase());
      return [id, letters];
    }),
  );
}
