/** The order in which nodes are drawn if all levels are open: row by row from the inputs on, each level as a whole. */

import type { Graph } from "./graph";

/** The place of each node in that order. Nodes that no level shows come last. */
export function drawnOrder(graph: Graph): Int32Array {
  const { nodes, rooms } = graph.model;
  const order = new Int32Array(nodes.op.length).fill(-1);
  const seen = new Set<number>();
  let next = 0;
  // A stack instead of a recursion: levels may be deep. What is drawn first is taken first, so it is pushed last.
  const stack: { kind: 0 | 1; ref: number }[] = [{ kind: 1, ref: 0 }];
  for (let one = stack.pop(); one; one = stack.pop()) {
    if (one.kind === 0) {
      if (order[one.ref] < 0) order[one.ref] = next++;
      stack.push(...nodes.bodies[one.ref].map(([, room]) => ({ kind: 1 as const, ref: room })).reverse());
      continue;
    }
    if (seen.has(one.ref) || !rooms[one.ref]) continue;
    seen.add(one.ref);
    const { kind, ref, row, x } = rooms[one.ref].items;
    const items = kind.flatMap((each, item) => (each <= 1 ? [item] : []));
    items.sort((a, b) => row[b] - row[a] || x[b] - x[a] || b - a);
    for (const item of items) stack.push({ kind: kind[item] as 0 | 1, ref: ref[item] });
  }
  return order.map((place) => (place < 0 ? next : place));
}
