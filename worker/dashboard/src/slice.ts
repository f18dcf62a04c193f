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
// distance in pixels from the top of the screen to that of the list.
export function sliceOf(heights: number[], top: number, screen: number): Slice {
  let first = 0,
    before = 0;
  while (first < heights.length && top + before + heights[first] < -margin) before += heights[first++];
  let end = first,
    bottom = top + before;
  while (end < heights.length && bottom < screen + margin) bottom += heights[end++];
  let after = 0;
  for (let i = end; i < heights.length; i++) after += heights[i];
  return { first, end, before, after };
}
