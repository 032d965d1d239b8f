/** Names of selected things in links: "node:Conv_1", "room:encoder.layer.3", "tensor:x"; by number where a name isn't unique. */

import type { Graph } from "./graph";
import type { Chosen } from "./side";

export function nameInLink(graph: Graph, { kind, ref }: Chosen): string {
  if (kind === "room") return `room:${graph.model.rooms[ref].path}`;
  if (kind === "value")
    return graph.model.values.name[ref] ? `tensor:${graph.model.values.name[ref]}` : `tensor-number:${ref}`;
  const name = graph.model.nodes.name[ref];
  return name && graph.nodeByName.get(name) === ref ? `node:${name}` : `node-number:${ref}`;
}

/** Returns the thing that a name in a link stands for; null if the model doesn't have it. */
export function chosenByLink(graph: Graph, text: string): Chosen | null {
  const [, way, name] = /^([a-z-]+):(.*)$/s.exec(text) ?? [];
  const found = (kind: Chosen["kind"], ref: number | undefined, length: number): Chosen | null =>
    ref !== undefined && ref >= 0 && ref < length ? { kind, ref } : null;
  const { nodes, values, rooms } = graph.model;
  if (way === "room") return found("room", graph.roomByPath.get(name), rooms.length);
  if (way === "node") return found("node", graph.nodeByName.get(name), nodes.op.length);
  if (way === "node-number") return found("node", Number(name), nodes.op.length);
  if (way === "tensor") return found("value", values.name.indexOf(name), values.name.length);
  if (way === "tensor-number") return found("value", Number(name), values.name.length);
  return null;
}
