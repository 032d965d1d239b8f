/** Goes along edges from the selection: to the neighbour in the picture, or to a reader or producer wherever it is. */

import type { App } from "./app";
import { firstOf, neighbour, type Direction } from "./walk";

/** Selects the neighbour of the selection, or the first item where nothing is selected. */
export function walk(app: App, direction: Direction): void {
  const { side } = app;
  const last = side.selection.at(-1);
  const spot = last && side.spot(last);
  const next = spot ? neighbour(side.picture, spot, direction) : firstOf(side.picture, side.room);
  const chosen = next && side.chosenAt(next);
  if (chosen) app.choose(app.active, chosen, { show: true });
  else app.refuse("Nothing further this way");
}

/** Goes to a reader of the selection ("down") or to the producer of its first operand ("up"), wherever that is. */
export function followEdge(app: App, way: "up" | "down"): void {
  const { graph, selection } = app.side;
  const last = selection.at(-1);
  if (!last || last.kind === "room") return walk(app, way);
  const { inputs, outputs } = graph.model.nodes;
  const { producer } = graph.model.values;
  const values = last.kind === "value" ? [last.ref] : way === "up" ? inputs[last.ref] : outputs[last.ref];
  const known = values.filter((value) => value >= 0);
  const nodes = known.flatMap((value) => (way === "down" ? graph.readers(value) : [producer[value]]));
  const node = nodes.find((one) => one >= 0);
  if (node !== undefined) app.jump(app.active, { kind: "node", ref: node });
  else app.refuse(way === "up" ? "Nothing computes it: a graph input or a constant" : "No node reads it");
}
