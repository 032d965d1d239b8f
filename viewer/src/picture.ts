/** The composed picture of a room: finds what lies at a point, and where a node is drawn. */

import { Composer, type Frame } from "./compose";
import type { Graph } from "./graph";
import { TITLE } from "./sizes";

/** An item of a frame, or the frame itself (`item` -1). */
export interface Spot {
  frame: Frame;
  item: number;
}

export interface Hit extends Spot {
  /** "toggle" opens or closes a room, "enter" shows it alone. */
  part: "body" | "toggle" | "enter";
}

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Signs for opening, closing and entering a room, in pixels at 100%. */
export const SIGN = 24;

export class Picture {
  readonly root: Frame;
  readonly frames = new Map<number, Frame>();

  constructor(
    readonly graph: Graph,
    composer: Composer,
    room: number,
    opened: ReadonlySet<number>,
  ) {
    this.root = composer.compose(room, opened);
    const add = (frame: Frame): void => {
      this.frames.set(frame.room, frame);
      frame.inner.forEach(add);
    };
    add(this.root);
  }

  /** The number of items that are drawn, those of opened rooms included. */
  get size(): number {
    let size = 0;
    for (const frame of this.frames.values()) size += frame.x.length;
    return size;
  }

  /** Where a node is drawn: its own item, or the closed room or the node that holds it. null: not in this picture. */
  spotOfNode(node: number): Spot | null {
    const frame = this.frames.get(this.graph.model.nodes.room[node]);
    const item = this.graph.itemOfNode[node];
    if (frame && item >= 0) return { frame, item };
    return this.spotOfRoom(this.graph.model.nodes.room[node], false);
  }

  /** Where a room is drawn: its frame if it is open (and `itself`), or the item that stands for it. */
  spotOfRoom(room: number, itself = true): Spot | null {
    const seen = new Set<number>();
    for (let at = room; at >= 0 && !seen.has(at);) {
      seen.add(at);
      const frame = this.frames.get(at);
      if (frame && (itself || at !== room)) return { frame, item: -1 };
      const host = this.graph.hostOf[at];
      if (host >= 0 && this.graph.itemOfRoom[at] < 0) return this.spotOfNode(host);
      const parent = this.graph.model.rooms[at].parent;
      const outer = this.frames.get(parent);
      if (outer && this.graph.itemOfRoom[at] >= 0) return { frame: outer, item: this.graph.itemOfRoom[at] };
      at = parent;
    }
    return null;
  }

  /** The item that shows a value as an input, an output or a stub. */
  spotOfValue(value: number): Spot | null {
    for (const frame of this.frames.values()) {
      const { kind, ref } = this.graph.model.rooms[frame.room].items;
      const item = kind.findIndex((one, at) => one >= 2 && ref[at] === value);
      if (item >= 0) return { frame, item };
    }
    return null;
  }

  box(spot: Spot): Box {
    const { frame, item } = spot;
    if (item < 0)
      return { left: frame.left, top: frame.top, right: frame.left + frame.width, bottom: frame.top + frame.height };
    return {
      left: frame.x[item] - frame.halfWidth[item],
      right: frame.x[item] + frame.halfWidth[item],
      top: frame.y[item] - frame.halfHeight[item],
      bottom: frame.y[item] + frame.halfHeight[item],
    };
  }

  hit(x: number, y: number): Hit | null {
    return this.hitIn(this.root, x, y);
  }

  private hitIn(frame: Frame, x: number, y: number): Hit | null {
    const row = rowAt(frame, y);
    if (row < 0 || y > frame.rowBottom[row]) return null;
    for (const item of itemsOfRow(frame, row, x, x)) {
      if (Math.abs(x - frame.x[item]) > frame.halfWidth[item] || Math.abs(y - frame.y[item]) > frame.halfHeight[item])
        continue;
      const inner = frame.inner.get(item);
      if (!inner) return this.signs({ frame, item, part: "body" }, x, y);
      return this.hitIn(inner, x, y) ?? this.signs({ frame: inner, item: -1, part: "body" }, x, y);
    }
    return null;
  }

  private signs(hit: Hit, x: number, y: number): Hit {
    const box = this.box(hit);
    if (hit.item < 0) {
      if (y < box.top + TITLE && x < box.left + SIGN + 6) hit.part = "toggle";
      else if (y < box.top + TITLE && x > box.right - SIGN - 6) hit.part = "enter";
      return hit;
    }
    const { kind, ref } = this.graph.model.rooms[hit.frame.room].items;
    if (kind[hit.item] === 1 && x < box.left + SIGN + 6) hit.part = "toggle";
    const hasBody = kind[hit.item] === 0 && this.graph.model.nodes.bodies[ref[hit.item]].length > 0;
    if (hasBody && x > box.right - SIGN) hit.part = "enter";
    return hit;
  }
}

/** The last row that begins at or above y; -1 if all begin below. */
export function rowAt(frame: Frame, y: number): number {
  let low = -1;
  let high = frame.rowTop.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (frame.rowTop[middle] <= y) low = middle;
    else high = middle;
  }
  return low;
}

/** The items of a row that lie between two positions at least in part. */
export function* itemsOfRow(frame: Frame, row: number, left: number, right: number): Generator<number> {
  const { start, entry } = frame.rows;
  const at = (place: number): number => (entry[place] >= 0 ? frame.x[entry[place]] : frame.bendX[-1 - entry[place]]);
  let low = start[row];
  let high = start[row + 1];
  // The first entry whose middle is not left of `left`; the one before it may still reach into view.
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) < left) low = middle + 1;
    else high = middle;
  }
  for (let place = low - 1; place >= start[row]; place--) {
    const item = entry[place];
    if (item < 0) continue;
    if (frame.x[item] + frame.halfWidth[item] >= left) yield item;
    break;
  }
  for (let place = low; place < start[row + 1]; place++) {
    const item = entry[place];
    if (item < 0) continue;
    if (frame.x[item] - frame.halfWidth[item] > right) return;
    yield item;
  }
}

/** The smallest box around boxes, of which there is at least one. */
export function around(boxes: Box[]): Box {
  return boxes.reduce((all, box) => ({
    left: Math.min(all.left, box.left),
    top: Math.min(all.top, box.top),
    right: Math.max(all.right, box.right),
    bottom: Math.max(all.bottom, box.bottom),
  }));
}
