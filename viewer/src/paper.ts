/** How a level lies on paper: upright or across, and, if it is long and thin, as strips beside each other. */

import type { Box, Picture } from "./picture";

/** What a picture may take of a page, in millimetres: of A4 and Letter the smaller, less margins, title and legend. */
const UPRIGHT = { width: 186, height: 222 };
const ACROSS = { width: 255, height: 152 };
/** Pixels of CSS in a millimetre. */
const PIXELS = 96 / 25.4;
/** On paper, words are legible at this zoom; a picture that is smaller is cut into strips. A choice. */
const LEGIBLE = 0.5;
/** The most strips that stand beside each other. A choice: a chain of 20,000 nodes fills a page with them. */
const MOST_STRIPS = 40;
/** The space between strips, in units of the picture. */
export const GAP = 40;
/** The margin around the picture. */
const MARGIN = 12;

export interface Sheet {
  wide: boolean;
  /** Parts of the picture, from the top down; each is drawn right of the one before. */
  strips: Box[];
  /** The size of all strips together, in units of the picture. */
  width: number;
  height: number;
  /** Pixels of CSS for a unit of the picture. */
  zoom: number;
}

/** The sheet for the whole picture: across if it is wider than high. */
export function sheetFor(picture: Picture): Sheet {
  const whole = withMargin(picture.box({ frame: picture.root, item: -1 }));
  const wide = whole.right - whole.left > whole.bottom - whole.top;
  let best = sheetOf([whole], wide);
  if (wide || best.zoom >= LEGIBLE) return best;
  const gaps = gapsBetween(picture);
  for (let count = 2; count <= MOST_STRIPS; count++) {
    const sheet = sheetOf(cut(whole, gaps, count), false);
    if (sheet.zoom > best.zoom) best = sheet;
  }
  return best;
}

function withMargin({ left, top, right, bottom }: Box): Box {
  return { left: left - MARGIN, top: top - MARGIN, right: right + MARGIN, bottom: bottom + MARGIN };
}

function sheetOf(strips: Box[], wide: boolean): Sheet {
  const paper = wide ? ACROSS : UPRIGHT;
  const width = strips.reduce((sum, strip) => sum + strip.right - strip.left + GAP, -GAP);
  const height = Math.max(...strips.map((strip) => strip.bottom - strip.top));
  const zoom = Math.min(1, (paper.width * PIXELS) / width, (paper.height * PIXELS) / height);
  return { wide, strips, width, height, zoom };
}

/** Heights at which no item is cut, from the top down. */
function gapsBetween(picture: Picture): number[] {
  const spans: [number, number][] = [];
  for (const frame of picture.frames.values())
    frame.y.forEach((y, item) => {
      if (!frame.inner.has(item)) spans.push([y - frame.halfHeight[item], y + frame.halfHeight[item]]);
    });
  spans.sort((a, b) => a[0] - b[0]);
  const gaps: number[] = [];
  let bottom = spans[0]?.[1] ?? 0;
  for (const [top, end] of spans) {
    if (top > bottom) gaps.push((top + bottom) / 2);
    bottom = Math.max(bottom, end);
  }
  return gaps;
}

/** Cuts a box into so many strips of about the same height, in gaps where there are any. */
function cut(whole: Box, gaps: number[], count: number): Box[] {
  const strips: Box[] = [];
  let { top } = whole;
  for (let left = count; left > 1; left--) {
    const wanted = top + (whole.bottom - top) / left;
    const near = nearest(gaps, wanted);
    const bottom = Math.abs(near - wanted) < (wanted - top) / 2 ? near : wanted;
    strips.push({ ...whole, top, bottom });
    top = bottom;
  }
  return [...strips, { ...whole, top }];
}

/** The number nearest to a wanted one, out of numbers in order; infinity if there are none. */
function nearest(numbers: number[], wanted: number): number {
  let [low, high] = [-1, numbers.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= wanted) low = middle;
    else high = middle;
  }
  const [before, after] = [numbers[low] ?? -Infinity, numbers[high] ?? Infinity];
  return wanted - before < after - wanted ? before : after;
}
