// The marks of providers: initials of our own on a color.

const turn = 137.5; // degrees, between neighbors of the list

// Mark is the mark of a provider. place is its index in a list of providers: neighbors have
// unlike colors.
export function Mark({ initials, place }: { initials: string; place: number }) {
  return (
    <span class="monogram" aria-hidden="true" style={{ "--hue": Math.round((Math.max(place, 0) * turn) % 360) }}>
      {initials}
    </span>
  );
}
