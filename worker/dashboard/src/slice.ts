// The part of a long list that is near the screen.
const margin = 800; // pixels above and below the screen that are rendered too

// Slice is the part of a list that is rendered: rows first to end - 1, and the
// heights in pixels of what is left out before and after them.
export interface Slice {
  first: number;
  end: number;
  before: number;
  after: number;
}

// sliceOf returns the slice of a list whose rows have these heights. top is the
// distance in pixels from the top of the screen to that of the list. The rows of now
// stay as long as they end between half the margin and twice the margin from the
// screen: which rows are rendered decides how wide the columns and how high the rows
// are, so a slice that followed every height would never settle.
export function sliceOf(heights: number[], top: number, screen: number, now?: Slice): Slice {
  const sum = (from: number, to?: number) => heights.slice(from, to).reduce((a, b) => a + b, 0);
  const near = (pixels: number) => pixels >= margin / 2 && pixels <= 2 * margin;
  let first = 0,
    end = 0;
  if (now && now.end <= heights.length) {
    const above = -top - sum(0, now.first),
      below = -above + sum(now.first, now.end) - screen;
    if (
      (near(above) || (now.first === 0 && above <= 2 * margin)) &&
      (near(below) || (now.end === heights.length && below <= 2 * margin))
    )
      ({ first, end } = now);
  }
  if (end === 0) {
    let bottom = top;
    while (first < heights.length && bottom + heights[first] < -margin) bottom += heights[first++];
    end = first;
    while (end < heights.length && bottom < screen + margin) bottom += heights[end++];
  }
  return { first, end, before: sum(0, first), after: sum(end) };
}
