/** The panel with all facts about the selection. */

import type { App } from "./app";
import { offersForTwo } from "./commands";
import { groupOf, STATE_SIGNS } from "./differences";
import { button, el, replace, style } from "./dom";
import type { Graph } from "./graph";
import { MOST, Links } from "./inspector_links";
import { commands, offerPart } from "./inspector_offers";
import { RoomInspector } from "./inspector_room";
import { constantOf, facts, section, typeOf, type Part } from "./inspector_parts";
import type { Chosen, Side } from "./side";
import { plural } from "./words";

export class Inspector {
  readonly element = el("div", { class: "inspector" });

  private readonly links: Links;
  private readonly rooms: RoomInspector;

  constructor(private readonly app: App) {
    this.links = new Links(app);
    this.rooms = new RoomInspector(app, this.links);
  }

  show(): void {
    const { side } = this.app;
    const last = side.selection.at(-1);
    const parts = !last ? this.shown(side) : side.selection.length > 1 ? this.several(side) : this.one(side, last);
    replace(this.element, ...parts);
    this.element.scrollTop = 0;
  }

  /** The facts without a selection: on the level that is shown alone, or on the model. */
  private shown(side: Side): Part[] {
    return side.room ? this.rooms.parts(side, side.room) : this.model(side);
  }

  private one(side: Side, { kind, ref }: Chosen): Part[] {
    return kind === "node" ? this.node(side, ref) : kind === "room" ? this.rooms.parts(side, ref) : this.value(side, ref);
  }

  // A node.

  private node(side: Side, node: number): Part[] {
    const { graph } = side;
    const { nodes, modules, sources } = graph.model;
    const op = graph.op(node);
    const dot = el("span", { class: "dot", "aria-hidden": "true" });
    style(dot, "background", this.app.familyColour(op.family));
    const module = modules[nodes.module[node]];
    const source = sources[nodes.source[node]];
    return [
      el("h2", {}, dot, op.domain && op.domain !== "ai.onnx" ? `${op.domain}::${op.type}` : op.type, this.doc(op.doc)),
      el("p", { class: "name" }, graph.nodeName(node)),
      graph.model.docs?.[node] ? el("p", { class: "doc" }, graph.model.docs[node]) : null,
      facts([
        ["family", op.family],
        ["torch module", module ? (module.type ? `${module.path}  (${module.type})` : module.path) : ""],
        ["source", source ? `${source.file}:${source.line}` : ""],
      ]),
      source?.text ? el("code", { class: "source" }, source.text.trim()) : null,
      ...this.figures(side, node),
      this.change(side, node),
      section(
        "Inputs",
        nodes.inputs[node].map((value, at) => this.operand(side, value, graph.role(node, "input", at) || `input ${at}`, "from")),
      ),
      section(
        "Read by its bodies",
        graph.captured(node).map((value) => this.operand(side, value, "", "from")),
      ),
      section(
        "Outputs",
        nodes.outputs[node].map((value, at) => this.operand(side, value, graph.role(node, "output", at) || `output ${at}`, "to")),
      ),
      this.attributes(nodes.attributes[node]),
      section(
        "Bodies",
        nodes.bodies[node].map(([label, room]) => this.body(side, label, room)),
      ),
      commands(this.app, side, [node]),
    ];
  }

  private doc(address: string): Part {
    if (!/^https:\/\//.test(address)) return null;
    return el(
      "a",
      { href: address, target: "_blank", rel: "noopener noreferrer", title: "The operator's page" },
      "operator ↗",
    );
  }

  private figures(side: Side, node: number): Part[] {
    const list = el("dl", { class: "facts" });
    for (const figures of this.app.figuresOf(side.graph.index)) {
      const figure = figures.writeNode(node);
      if (!figure) continue;
      const text = figures.text(node);
      list.append(
        el("dt", {}, figures.overlay.title),
        el("dd", {}, el("b", {}, figure), text ? el("small", { class: "dim" }, ` ${text}`) : null),
      );
    }
    return list.children.length ? [section("Measured", [list])] : [];
  }

  private change(side: Side, node: number): Part {
    const { differences } = this.app;
    const state = differences?.state(side.graph.index, node);
    if (!differences || !state) return null;
    const [words, ...lines] = differences.words(side.graph.index, node);
    const there = differences.counterparts(side.graph.index, node);
    const other = this.app.sides[1 - side.graph.index];
    return section("Difference", [
      el(
        "p",
        {},
        STATE_SIGNS[state] ? el("span", { class: `sign ${groupOf(state)}` }, STATE_SIGNS[state]) : null,
        words,
      ),
      ...lines.map((line) => el("p", { class: "line" }, line)),
      there.length ? el("p", {}, `in ${other.graph.model.name}: `, ...this.links.nodes(other, there)) : null,
    ]);
  }

  /** Whether several nodes are of one region that the other model computes otherwise. */
  private isOneRegion(side: Side, nodes: number[]): boolean {
    const changes = nodes.map((node) => this.app.differences?.change(side.graph.index, node) ?? -1);
    return changes.length > 1 && changes[0] >= 0 && changes.every((at) => at === changes[0]);
  }

  private operand(side: Side, value: number, label: string, way: "from" | "to"): Part {
    const { graph } = side;
    if (value < 0) return el("div", { class: "operand dim" }, `${label}: left out`);
    const { producer } = graph.model.values;
    const head = el(
      "div",
      {},
      label ? el("span", { class: "dim" }, label) : null,
      this.links.to(graph.valueName(value), { kind: "value", ref: value }, graph.index),
      typeOf(side, value),
    );
    const ends = way === "to" ? graph.readers(value) : producer[value] >= 0 ? [producer[value]] : [];
    const words = endWords(graph, value, way, ends.length);
    return el(
      "div",
      { class: "operand" },
      head,
      constantOf(side, value),
      ends.length || words
        ? el(
            "div",
            { class: "ends" },
            el("span", { class: "dim" }, `${way} `),
            words,
            ...this.links.readers(side, value, ends),
          )
        : null,
    );
  }

  private attributes(rows: [string, string, 0 | 1][]): Part {
    if (!rows.length) return null;
    const sorted = [...rows.filter((row) => !row[2]), ...rows.filter((row) => row[2])];
    const list = el("dl", { class: "facts" });
    for (const [name, value, isDefault] of sorted) {
      list.append(
        el("dt", { class: isDefault ? "default" : "" }, name),
        el(
          "dd",
          {
            class: isDefault ? "default" : "",
            title: isDefault ? "the operator's default; not in the file" : undefined,
          },
          value,
          isDefault ? el("small", {}, " default") : null,
        ),
      );
    }
    return section("Attributes", [list]);
  }

  private body(side: Side, label: string, room: number): Part {
    const { rooms } = side.graph.model;
    return el(
      "p",
      {},
      button(`${label} →`, () => this.app.enter(side.graph.index, room), {
        class: "link",
        title: `Show ${rooms[room].title}`,
      }),
      el("span", { class: "dim" }, ` ${plural(rooms[room].count, "node")}`),
    );
  }

  // A value.

  private value(side: Side, value: number): Part[] {
    const { graph } = side;
    const { kind, producer } = graph.model.values;
    const words = ["tensor", "graph input", "graph output", "constant"][kind[value]] ?? "tensor";
    return [
      el("h2", {}, graph.valueName(value)),
      el("p", { class: "name" }, words),
      el("p", {}, typeOf(side, value)),
      section("Values", [constantOf(side, value)]),
      section("Computed by", producer[value] >= 0 ? [this.links.node(side, producer[value])] : []),
      section(
        "Read by",
        this.links.readers(side, value),
      ),
    ];
  }

  // Several, and nothing.

  private several(side: Side): Part[] {
    const nodes = this.app.selectedNodes(side);
    return [
      el("h2", {}, `${plural(side.selection.length, "item")} selected`),
      el("p", { class: "name" }, plural(nodes.length, "node")),
      section(
        "Selected",
        side.selection
          .slice(0, MOST)
          .map((one) => el("p", {}, this.links.to(this.app.nameOf(side, one), one, side.graph.index))),
      ),
      this.isOneRegion(side, nodes) ? this.change(side, nodes[0]) : null,
      this.rooms.operators(side, nodes),
      commands(this.app, side, nodes),
    ];
  }

  private model(side: Side): Part[] {
    const { model } = side.graph;
    const { scene } = this.app;
    const nodes = model.nodes.op.map((_, node) => node);
    return [
      el("h2", {}, model.name),
      el("p", { class: "name" }, scene.headline),
      facts([...model.facts, ["SHA-256", model.hash ? `${model.hash.slice(0, 16)}…` : ""]]),
      section(
        "Notes",
        scene.notes.map((note) => el("p", { class: "note" }, note)),
      ),
      model.nodes.op.length
        ? null
        : el("p", { class: "note" }, "This model has no nodes: its outputs are its inputs or constants."),
      this.rooms.operators(side, nodes),
      this.app.sides.length > 1
        ? section(
            "Go on",
            offersForTwo(this.app.sides[0].graph, this.app.sides[1].graph).map((offer) => offerPart(this.app, offer)),
          )
        : null,
    ];
  }
}

/** Where a value comes from or goes to, besides nodes: the model's inputs and outputs, or those of a body or function. */
function endWords(graph: Graph, value: number, way: "from" | "to", ends: number): string {
  const kind = graph.model.values.kind[value];
  const owner = graph.ownerOf(value, way === "from" ? "input" : "output");
  const room = graph.model.rooms[owner];
  if (way === "from") return room ? `input of ${room.path || room.title}` : kind === 1 ? "graph input" : "";
  if (room) return `output of ${room.path || room.title}`;
  return kind === 2 ? "graph output" : ends ? "" : "not read";
}
