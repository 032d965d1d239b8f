/**
 * Puts rooms into each other: an opened room takes the place of its item, its row grows to its height, and what lies
 * beside it in the row moves aside. Everything stays in its row, so that edges still point down. O(items and bends).
 */

import type { Graph } from "./graph";
import { rowsOf, type Rows } from "./rows";
import { separate } from "./separate";
import { BEND, GAP, HALF_WIDTH, HEIGHT, PADDING, ROW_GAP, ROW_GAP_MORE, ROW_GAP_SLOPE, TITLE, UNIT } from "./sizes";

/** A room at its place in the picture. All positions are pixels at 100%. */
export interface Frame {
  room: number;
  depth: number;
  rows: Rows;
  left: number;
  top: number;
  width: number;
  height: number;
  /** Middles of the items. */
  x: Float64Array;
  y: Float64Array;
  halfWidth: Float64Array;
  halfHeight: Float64Array;
  rowTop: Float64Array;
  rowBottom: Float64Array;
  /** Dense row of each item. */
  row: Int32Array;
  bendX: Float64Array;
  /** Opened rooms by item. */
  inner: Map<number, Frame>;
}

export class Composer {
  private readonly cache = new Map<number, Rows>();

  constructor(private readonly graph: Graph) {}

  rows(room: number): Rows {
    let rows = this.cache.get(room);
    if (!rows) this.cache.set(room, (rows = rowsOf(this.graph.model.rooms[room])));
    return rows;
  }

  /** The picture of a room in which the rooms `opened` are open. */
  compose(room: number, opened: ReadonlySet<number>): Frame {
    const frame = this.measure(room, opened, 0, new Set());
    move(frame, -frame.left, -frame.top);
    return frame;
  }

  private measure(room: number, opened: ReadonlySet<number>, depth: number, outer: Set<number>): Frame {
    const rows = this.rows(room);
    const { items } = this.graph.model.rooms[room];
    const count = items.kind.length;
    const frame: Frame = {
      room,
      depth,
      rows,
      left: 0,
      top: 0,
      width: 0,
      height: 0,
      x: Float64Array.from(items.x, (x) => x * UNIT),
      y: new Float64Array(count),
      halfWidth: Float64Array.from(items.kind, (kind) => HALF_WIDTH[kind]),
      halfHeight: Float64Array.from(items.kind, (kind) => HEIGHT[kind] / 2),
      rowTop: new Float64Array(rows.count),
      rowBottom: new Float64Array(rows.count),
      row: new Int32Array(count),
      bendX: new Float64Array(rows.bendCount),
      inner: new Map(),
    };
    outer.add(room);
    for (let item = 0; item < count; item++) {
      const inside = items.ref[item];
      if (items.kind[item] !== 1 || !opened.has(inside) || outer.has(inside)) continue;
      const inner = this.measure(inside, opened, depth + 1, outer);
      frame.inner.set(item, inner);
      frame.halfWidth[item] = inner.width / 2;
      frame.halfHeight[item] = inner.height / 2;
    }
    outer.delete(room);
    this.placeBends(frame);
    for (let row = 0; row < rows.count; row++) spread(frame, row);
    stack(frame, this.reaches(frame));
    enclose(frame);
    return frame;
  }

  private placeBends(frame: Frame): void {
    this.graph.model.rooms[frame.room].edges.bends.forEach((bends, edge) => {
      for (let step = 0; step < bends.length; step++)
        frame.bendX[frame.rows.bendStart[edge] + step] = bends[step] * UNIT;
    });
  }

  /** The largest sideways distance of the edges below each row. */
  private reaches(frame: Frame): Float64Array {
    const { edges } = this.graph.model.rooms[frame.room];
    const far = new Float64Array(frame.rows.count);
    for (let edge = 0; edge < edges.from.length; edge++) {
      let row = frame.row[edges.from[edge]];
      let x = frame.x[edges.from[edge]];
      for (let bend = frame.rows.bendStart[edge]; bend <= frame.rows.bendStart[edge + 1]; bend++, row++) {
        const next = bend < frame.rows.bendStart[edge + 1] ? frame.bendX[bend] : frame.x[edges.to[edge]];
        if (row < far.length) far[row] = Math.max(far[row], Math.abs(next - x));
        x = next;
      }
    }
    return far;
  }
}

/** Moves the items and bends of a row apart. Opened rooms are heavy: they stay, and the others give way. */
function spread(frame: Frame, row: number): void {
  const part = frame.rows.entry.subarray(frame.rows.start[row], frame.rows.start[row + 1]);
  const wanted = new Float64Array(part.length);
  const half = new Float64Array(part.length);
  const weight = new Float64Array(part.length);
  part.forEach((entry, at) => {
    wanted[at] = entry >= 0 ? frame.x[entry] : frame.bendX[-1 - entry];
    half[at] = entry >= 0 ? frame.halfWidth[entry] : BEND;
    weight[at] = entry < 0 ? 0.1 : frame.inner.has(entry) ? 1e6 : 1;
  });
  separate(wanted, half, weight, GAP).forEach((x, at) => {
    const entry = part[at];
    if (entry >= 0) {
      frame.x[entry] = x;
      frame.row[entry] = row;
    } else frame.bendX[-1 - entry] = x;
  });
}

/** Puts the rows below each other. */
function stack(frame: Frame, reach: Float64Array): void {
  let y = 0;
  for (let row = 0; row < frame.rows.count; row++) {
    let half = 0;
    for (let at = frame.rows.start[row]; at < frame.rows.start[row + 1]; at++) {
      const entry = frame.rows.entry[at];
      if (entry >= 0) half = Math.max(half, frame.halfHeight[entry]);
    }
    frame.rowTop[row] = y;
    frame.rowBottom[row] = y + 2 * half;
    for (let at = frame.rows.start[row]; at < frame.rows.start[row + 1]; at++) {
      const entry = frame.rows.entry[at];
      if (entry >= 0) frame.y[entry] = y + half;
    }
    y += 2 * half + ROW_GAP + Math.min(ROW_GAP_MORE, reach[row] * ROW_GAP_SLOPE);
  }
}

/** Gives the frame its size, and moves the rooms inside it to their items. */
function enclose(frame: Frame): void {
  let left = Infinity;
  let right = -Infinity;
  for (let item = 0; item < frame.x.length; item++) {
    left = Math.min(left, frame.x[item] - frame.halfWidth[item]);
    right = Math.max(right, frame.x[item] + frame.halfWidth[item]);
  }
  for (const x of frame.bendX) {
    left = Math.min(left, x - BEND);
    right = Math.max(right, x + BEND);
  }
  if (left > right) [left, right] = [0, 2 * HALF_WIDTH[0]];
  const bottom = frame.rows.count ? frame.rowBottom[frame.rows.count - 1] : HEIGHT[0];
  frame.left = left - PADDING;
  frame.top = -TITLE - PADDING;
  frame.width = Math.max(right - left, 2 * HALF_WIDTH[0]) + 2 * PADDING;
  frame.height = bottom + TITLE + 2 * PADDING;
  for (const [item, inner] of frame.inner) {
    move(inner, frame.x[item] - frame.halfWidth[item] - inner.left, frame.y[item] - frame.halfHeight[item] - inner.top);
  }
}

function move(frame: Frame, dx: number, dy: number): void {
  frame.left += dx;
  frame.top += dy;
  for (let at = 0; at < frame.x.length; at++) {
    frame.x[at] += dx;
    frame.y[at] += dy;
  }
  for (let at = 0; at < frame.bendX.length; at++) frame.bendX[at] += dx;
  for (let row = 0; row < frame.rowTop.length; row++) {
    frame.rowTop[row] += dy;
    frame.rowBottom[row] += dy;
  }
  for (const inner of frame.inner.values()) move(inner, dx, dy);
}
