/** The words on items: titles and the line below, made once for each. */

import { dimsText, type Graph } from "./graph";
import { grouped, plural } from "./words";

export interface Label {
  title: string;
  lines: string[];
}

/** So many letters fit on a card; longer values are shortened, so that the next attribute is seen, too. */
const VALUE = 18;

export class Labels {
  private readonly nodes: (Label | undefined)[] = [];
  private readonly rooms: (Label | undefined)[] = [];

  constructor(private readonly graph: Graph) {}

  node(node: number): Label {
    return (this.nodes[node] ??= {
      title: this.graph.op(node).type,
      lines: [this.summary(node), this.graph.nodeName(node)].filter(Boolean),
    });
  }

  room(room: number): Label {
    return (this.rooms[room] ??= { title: this.graph.model.rooms[room].title, lines: [roomSummary(this.graph, room)] });
  }

  /** The shape of the weights, values of small constants, and attributes that differ from their defaults. */
  private summary(node: number): string {
    const { nodes, values, constants } = this.graph.model;
    const parts: string[] = [];
    for (const value of nodes.inputs[node].slice(1)) {
      if (value < 0 || values.kind[value] !== 3) continue;
      const type = this.graph.type(value);
      const text = constants[value]?.text;
      if (text && text.length <= VALUE) parts.push(text);
      else if (type?.dims && type.dims.length > 1 && !parts.length) parts.push(`⟨${dimsText(type)}⟩`);
    }
    // The shape of the weights tells the size of the kernel.
    const known = parts[0]?.startsWith("⟨") ? "kernel_shape" : "";
    for (const [name, value, isDefault] of nodes.attributes[node])
      if (!isDefault && name !== known) parts.push(`${name} ${shortened(value)}`);
    return parts.slice(0, 4).join("  ");
  }
}

function roomSummary(graph: Graph, at: number): string {
  const room = graph.model.rooms[at];
  const alike = room.repeats > 1 ? `  ·  one of ${grouped(room.repeats)} alike` : "";
  return plural(room.count, "node") + alike;
}

function shortened(value: string): string {
  return value.length > VALUE ? `${value.slice(0, VALUE - 1)}…` : value;
}
