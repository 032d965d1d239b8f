/** Finds places for the types of values: below the item that gives them, beside edges and other types, not on them. */

import type { Frame } from "./compose";
import { shortDim, type Graph, type TypeParts } from "./graph";
import { listOf } from "./rows";
import type { TextMeasure } from "./text";

export const TYPE_SIZE = 9.5;

export interface TypeLabel {
  left: number;
  /** The middle of the line. */
  y: number;
  width: number;
  parts: { text: string; symbolic: boolean }[];
}

/** An item with many outputs names the types of the first few. */
const MOST = 2;
const LINE = 12;
/** Space between words and the edge that they belong to. */
const BESIDE = 6;
/** Words keep so far from the row below, whose arrows end there. */
const ABOVE_NEXT = 14;
const SAMPLES = 12;
/** The shadow of a closed room reaches so far below it. */
const SHADOW = 6;

interface Rect {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const known = new WeakMap<Frame, Map<number, TypeLabel[]>>();

/** The types below a row; found once for each row of a frame. */
export function typeLabels(graph: Graph, frame: Frame, row: number, measure: TextMeasure): TypeLabel[] {
  let rows = known.get(frame);
  if (!rows) known.set(frame, (rows = new Map()));
  let labels = rows.get(row);
  if (!labels) rows.set(row, (labels = placed(graph, frame, row, measure)));
  return labels;
}

function placed(graph: Graph, frame: Frame, row: number, measure: TextMeasure): TypeLabel[] {
  const { items, edges } = graph.model.rooms[frame.room];
  const curves = sampled(frame, row);
  const taken: Rect[] = [];
  const labels: TypeLabel[] = [];
  for (let place = frame.rows.start[row]; place < frame.rows.start[row + 1]; place++) {
    const item = frame.rows.entry[place];
    // Inputs say their type themselves.
    if (item < 0 || items.kind[item] === 2 || frame.inner.has(item)) continue;
    const values = new Set<number>();
    for (const edge of listOf(frame.rows.leaving, item)) values.add(edges.value[edge]);
    for (const value of [...values].slice(0, MOST)) {
      const type = graph.type(value);
      const label = type && best(frame, row, item, type, measure, curves, taken, items.kind[item] === 1 ? SHADOW : 0);
      if (!label) continue;
      labels.push(label);
      taken.push(rectOf(label));
    }
  }
  return labels;
}

/** The place with the fewest crossed edges; null if all would cover other words. */
function best(
  frame: Frame,
  row: number,
  item: number,
  type: TypeParts,
  measure: TextMeasure,
  curves: Float64Array[],
  taken: Rect[],
  shadow: number,
): TypeLabel | null {
  const first = frame.rowBottom[row] + 10 + shadow;
  const last = row + 1 < frame.rows.count ? frame.rowTop[row + 1] - ABOVE_NEXT : first;
  let found: { label: TypeLabel; crossed: number } | null = null;
  for (const parts of [words(type, true), words(type, false)]) {
    const width = parts.reduce((sum, part) => sum + measure.width(part.text, "plain") * TYPE_SIZE, 0);
    for (let y = first; y <= Math.max(first, last); y += LINE) {
      for (const left of [frame.x[item] + BESIDE, frame.x[item] - BESIDE - width]) {
        const label = { left, y, width, parts };
        const rect = rectOf(label);
        if (taken.some((other) => overlap(rect, other))) continue;
        const crossed = curves.reduce((count, curve) => count + Number(crosses(curve, rect)), 0);
        if (!crossed) return label;
        if (!found || crossed < found.crossed) found = { label, crossed };
      }
    }
  }
  return found?.label ?? null;
}

function words(type: TypeParts, withDtype: boolean): TypeLabel["parts"] {
  const parts = (type.dims ?? []).flatMap((dim, at) => [
    ...(at ? [{ text: "×", symbolic: false }] : []),
    { text: shortDim(dim.text), symbolic: dim.symbolic },
  ]);
  if (withDtype || !parts.length) parts.push({ text: parts.length ? ` ${type.dtype}` : type.dtype, symbolic: false });
  return parts;
}

function rectOf({ left, y, width }: TypeLabel): Rect {
  return { left: left - 2, right: left + width + 2, top: y - TYPE_SIZE * 0.6, bottom: y + TYPE_SIZE * 0.6 };
}

function overlap(a: Rect, b: Rect): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** Points along each edge below a row, as x and y in turns. */
function sampled(frame: Frame, row: number): Float64Array[] {
  const { rows } = frame;
  const curves: Float64Array[] = [];
  for (let piece = rows.pieceStart[row]; piece < rows.pieceStart[row + 1]; piece++) {
    const [from, to] = [rows.pieceFrom[piece], rows.pieceTo[piece]];
    const x0 = from >= 0 ? frame.x[from] : frame.bendX[-1 - from];
    const x1 = to >= 0 ? frame.x[to] : frame.bendX[-1 - to];
    const next = to >= 0 ? frame.row[to] : row + 1;
    curves.push(curve(x0, frame.rowBottom[row], x1, frame.rowTop[next]));
  }
  return curves;
}

/** The curve that leaves and arrives upright, as `CanvasSurface.curves` draws it. */
function curve(x0: number, y0: number, x1: number, y1: number): Float64Array {
  const points = new Float64Array(2 * (SAMPLES + 1));
  const middle = (y0 + y1) / 2;
  for (let at = 0; at <= SAMPLES; at++) {
    const t = at / SAMPLES;
    const near = (1 - t) ** 3 + 3 * (1 - t) ** 2 * t;
    points[2 * at] = x0 * near + x1 * (1 - near);
    points[2 * at + 1] = y0 * (1 - t) ** 3 + 3 * middle * ((1 - t) ** 2 * t + (1 - t) * t ** 2) + y1 * t ** 3;
  }
  return points;
}

/** Whether a line through points enters a rectangle: some of its pieces overlaps it. */
function crosses(points: Float64Array, rect: Rect): boolean {
  for (let at = 0; at + 3 < points.length; at += 2) {
    const [x0, y0, x1, y1] = [points[at], points[at + 1], points[at + 2], points[at + 3]];
    if (y0 > rect.bottom || y1 < rect.top) continue;
    // The part of the piece that lies at the height of the rectangle.
    const along = (y: number): number =>
      y1 === y0 ? x0 : x0 + ((x1 - x0) * (Math.min(y1, Math.max(y0, y)) - y0)) / (y1 - y0);
    const [a, b] = [along(rect.top), along(rect.bottom)];
    if (Math.max(a, b) > rect.left && Math.min(a, b) < rect.right) return true;
  }
  return false;
}
