/** The neighbour of an item for the arrow keys: along edges up and down, along the row left and right. */

import type { Picture, Spot } from "./picture";
import { listOf } from "./rows";

export type Direction = "up" | "down" | "left" | "right";

export function neighbour(picture: Picture, { frame, item }: Spot, direction: Direction): Spot | null {
  if (item < 0) return direction === "down" || direction === "right" ? firstOf(picture, frame.room) : null;
  if (direction === "left" || direction === "right") return beside({ frame, item }, direction === "right" ? 1 : -1);
  const { edges, items } = picture.graph.model.rooms[frame.room];
  const ends = direction === "down" ? edges.to : edges.from;
  const near = [...listOf(direction === "down" ? frame.rows.leaving : frame.rows.arriving, item)].map(
    (edge) => ends[edge],
  );
  const nodes = near.filter((one) => items.kind[one] !== 4);
  const sorted = (nodes.length ? nodes : near).sort(
    (a, b) => Math.abs(frame.x[a] - frame.x[item]) - Math.abs(frame.x[b] - frame.x[item]) || a - b,
  );
  return sorted.length ? { frame, item: sorted[0] } : null;
}

function beside({ frame, item }: Spot, step: 1 | -1): Spot | null {
  const { start, entry } = frame.rows;
  const row = frame.row[item];
  let place = start[row];
  while (entry[place] !== item) place += 1;
  for (place += step; place >= start[row] && place < start[row + 1]; place += step)
    if (entry[place] >= 0) return { frame, item: entry[place] };
  return null;
}

/** The first item of a room. */
export function firstOf(picture: Picture, room: number): Spot | null {
  const frame = picture.frames.get(room);
  const item = frame?.rows.entry.find((one) => one >= 0);
  return frame && item !== undefined ? { frame, item } : null;
}
