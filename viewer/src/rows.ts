/** The rows of a room: what lies in each, from left to right. Does not depend on which rooms are open. */

import type { Room } from "./scene";

export interface Rows {
  count: number;
  /** Where each row begins in `entry`; one more than there are rows. */
  start: Int32Array;
  /** Items as their index; bends as -1 - index. */
  entry: Int32Array;
  /** The first bend of each edge; one more than there are edges. */
  bendStart: Int32Array;
  bendCount: number;
  /** Pieces of edges from a row to the one below, by row: the entries that they join, and their edge. */
  pieceStart: Int32Array;
  pieceFrom: Int32Array;
  pieceTo: Int32Array;
  pieceEdge: Int32Array;
  /** Edges that leave each item, and that arrive. */
  leaving: Lists;
  arriving: Lists;
  /** The items that are inputs and outputs of the room, by value. */
  inputs: Map<number, number>;
  outputs: Map<number, number>;
}

/** Lists of numbers by index, in two arrays. */
export interface Lists {
  start: Int32Array;
  list: Int32Array;
}

export function listsBy(keys: ArrayLike<number>, count: number): Lists {
  const start = new Int32Array(count + 1);
  for (let at = 0; at < keys.length; at++) start[keys[at] + 1] += 1;
  for (let key = 0; key < count; key++) start[key + 1] += start[key];
  const next = start.slice();
  const list = new Int32Array(keys.length);
  for (let at = 0; at < keys.length; at++) list[next[keys[at]]++] = at;
  return { start, list };
}

export function listOf(lists: Lists, key: number): Int32Array {
  return lists.list.subarray(lists.start[key], lists.start[key + 1]);
}

export function rowsOf(room: Room): Rows {
  const { items, edges } = room;
  // Rows without an item or a bend take no space: the numbers of the others are made dense.
  const dense = denseRows(room);
  const count = dense.size;
  const bendStart = new Int32Array(edges.from.length + 1);
  edges.bends.forEach((bends, edge) => (bendStart[edge + 1] = bendStart[edge] + bends.length));
  const bendCount = bendStart[edges.from.length];
  const rowOfItem = Int32Array.from(items.row, (row) => dense.get(row)!);
  const start = new Int32Array(count + 1);
  const x = new Float64Array(bendCount);
  const rowOfBend = new Int32Array(bendCount);
  edges.bends.forEach((bends, edge) => {
    bends.forEach((at, step) => {
      x[bendStart[edge] + step] = at;
      rowOfBend[bendStart[edge] + step] = dense.get(items.row[edges.from[edge]] + 1 + step)!;
    });
  });
  for (const row of rowOfItem) start[row + 1] += 1;
  for (const row of rowOfBend) start[row + 1] += 1;
  for (let row = 0; row < count; row++) start[row + 1] += start[row];
  const next = start.slice();
  const entry = new Int32Array(start[count]);
  rowOfItem.forEach((row, item) => (entry[next[row]++] = item));
  rowOfBend.forEach((row, bend) => (entry[next[row]++] = -1 - bend));
  const place = (one: number) => (one >= 0 ? items.x[one] : x[-1 - one]);
  for (let row = 0; row < count; row++) {
    const part = entry.subarray(start[row], start[row + 1]);
    if (part.length > 1) part.set(Array.from(part).sort((a, b) => place(a) - place(b) || b - a));
  }
  const inputs = new Map<number, number>();
  const outputs = new Map<number, number>();
  items.kind.forEach((kind, item) =>
    kind === 2 ? inputs.set(items.ref[item], item) : kind === 3 && outputs.set(items.ref[item], item),
  );
  const leaving = listsBy(edges.from, items.kind.length);
  const arriving = listsBy(edges.to, items.kind.length);
  return {
    count,
    start,
    entry,
    bendStart,
    bendCount,
    ...pieces(room, rowOfItem, bendStart, count),
    leaving,
    arriving,
    inputs,
    outputs,
  };
}

/** Cuts the edges at their bends. Edges that don't point down have one piece, in the row where they begin. */
function pieces(room: Room, rowOfItem: Int32Array, bendStart: Int32Array, count: number) {
  const { edges } = room;
  const total = edges.from.length + bendStart[edges.from.length];
  const [rows, from, to, edgeOf] = [0, 1, 2, 3].map(() => new Int32Array(total));
  let next = 0;
  for (let edge = 0; edge < edges.from.length; edge++) {
    let [row, last] = [rowOfItem[edges.from[edge]], edges.from[edge]];
    for (let bend = bendStart[edge]; bend <= bendStart[edge + 1]; bend++, row++, next++) {
      const here = bend < bendStart[edge + 1] ? -1 - bend : edges.to[edge];
      [rows[next], from[next], to[next], edgeOf[next]] = [row, last, here, edge];
      last = here;
    }
  }
  const { start, list } = listsBy(rows, count);
  const inOrder = (column: Int32Array): Int32Array => Int32Array.from(list, (at) => column[at]);
  return { pieceStart: start, pieceFrom: inOrder(from), pieceTo: inOrder(to), pieceEdge: inOrder(edgeOf) };
}

function denseRows(room: Room): Map<number, number> {
  const used = new Set<number>(room.items.row);
  room.edges.bends.forEach((bends, edge) => {
    const first = room.items.row[room.edges.from[edge]] + 1;
    for (let step = 0; step < bends.length; step++) used.add(first + step);
  });
  return new Map([...used].sort((a, b) => a - b).map((row, at) => [row, at]));
}
