/** Draws edges: curves from row to row through their bends. */

import type { Frame } from "./compose";
import type { View } from "./draw";
import type { Box } from "./picture";
import type { Surface } from "./surface";

/** The most pieces of edges that are drawn at once. If there are more, each second or third edge is left out while far out. */
const MOST_PIECES = 5000;
const MOST_WHILE_MOVING = 1500;
/** Rows nearer than this on the screen have no visible edges between them. */
const LEAST_PITCH = 2.5;

export function drawEdges(surface: Surface, view: View, frame: Frame, seen: Box, first: number, last: number): void {
  const { zoom } = view.camera;
  const { rows } = frame;
  if (!rows.pieceEdge.length) return;
  const marked = view.marks.edges.get(frame.room);
  const pitch = ((frame.rowBottom[rows.count - 1] - frame.rowTop[0]) / rows.count) * zoom;
  const pieces = rows.pieceStart[Math.min(rows.count, last + 1)] - rows.pieceStart[first];
  const most = view.moving ? MOST_WHILE_MOVING : MOST_PIECES;
  const every = Math.max(1, Math.ceil(pieces / most));
  const straight = zoom < 0.18;
  const plain: number[] = [];
  const strong: number[] = [];
  const tips: number[] = [];
  for (let row = first; row <= last && row < rows.count; row++) {
    for (let piece = rows.pieceStart[row]; piece < rows.pieceStart[row + 1]; piece++) {
      const edge = rows.pieceEdge[piece];
      const isMarked = marked?.has(edge) ?? false;
      if (!isMarked && (pitch < LEAST_PITCH || (every > 1 && edge % every !== 0))) continue;
      addPiece(view, frame, row, piece, seen, isMarked ? strong : plain, isMarked || zoom >= 0.3 ? tips : null);
    }
  }
  const thick = Math.max(0.5, Math.min(1.6, 1.3 * zoom + 0.25));
  surface.curves(plain, view.palette.edge, thick, straight);
  if (zoom >= 0.3)
    for (let at = 0; at < tips.length; at += 2)
      surface.triangle(tips[at], tips[at + 1], Math.max(3, 7 * zoom), view.palette.edge);
  surface.curves(strong, view.palette.accent, Math.max(1.6, 2 * thick), straight);
}

/** Adds what is visible of a piece: upright beside taller items, then bent to the next row. */
function addPiece(
  view: View,
  frame: Frame,
  row: number,
  piece: number,
  seen: Box,
  into: number[],
  tips: number[] | null,
): void {
  const { camera } = view;
  const { rows } = frame;
  const [from, to] = [rows.pieceFrom[piece], rows.pieceTo[piece]];
  const value = view.picture.graph.model.rooms[frame.room].edges.value[rows.pieceEdge[piece]];
  const x0 = from >= 0 ? portX(frame, from, value, "outputs") : frame.bendX[-1 - from];
  const x1 = to >= 0 ? portX(frame, to, value, "inputs") : frame.bendX[-1 - to];
  if (Math.max(x0, x1) < seen.left || Math.min(x0, x1) > seen.right) return;
  const next = to >= 0 ? frame.row[to] : row + 1;
  const [bottom, top] = [frame.rowBottom[row], frame.rowTop[next]];
  const begin = from >= 0 ? frame.y[from] + frame.halfHeight[from] : frame.rowTop[row];
  const end = to >= 0 ? frame.y[to] - frame.halfHeight[to] : top;
  const [sx0, sx1, s0, s1] = [camera.screenX(x0), camera.screenX(x1), camera.screenY(bottom), camera.screenY(top)];
  if (begin < bottom - 0.5) into.push(sx0, camera.screenY(begin), sx0, s0);
  into.push(sx0, s0, sx1, s1);
  if (end > top + 0.5) into.push(sx1, s1, sx1, camera.screenY(end));
  if (tips && to >= 0) tips.push(sx1, camera.screenY(end));
}

/** Where an edge meets an item: its middle, or above the input of an opened room that it leads to. */
function portX(frame: Frame, item: number, value: number, side: "inputs" | "outputs"): number {
  const inner = frame.inner.get(item);
  const port = inner?.rows[side].get(value);
  return inner && port !== undefined ? inner.x[port] : frame.x[item];
}

/** Lines from the border of an opened room to its inputs in the first row, and from its outputs in the last. */
export function drawPorts(view: View, frame: Frame): number[] {
  const { items } = view.picture.graph.model.rooms[frame.room];
  const { camera } = view;
  const lines: number[] = [];
  for (const [row, kind] of [
    [0, 2],
    [frame.rows.count - 1, 3],
  ]) {
    if (row < 0) continue;
    for (let place = frame.rows.start[row]; place < frame.rows.start[row + 1]; place++) {
      const item = frame.rows.entry[place];
      if (item < 0 || items.kind[item] !== kind) continue;
      const x = camera.screenX(frame.x[item]);
      const border = kind === 2 ? frame.top : frame.top + frame.height;
      lines.push(
        x,
        camera.screenY(border),
        x,
        camera.screenY(frame.y[item] + (kind === 2 ? -1 : 1) * frame.halfHeight[item]),
      );
    }
  }
  return lines;
}
