/** The panel that tells all about what is selected. */

import type { App } from "./app";
import { offers, offersForTwo, type Offer } from "./commands";
import { GROUP_SIGNS, GROUP_WORDS, GROUPS, groupOf, STATE_SIGNS, STATE_WORDS } from "./differences";
import { button, el, replace, style } from "./dom";
import { constantOf, facts, section, typeOf, type Part } from "./inspector_parts";
import { copyCommand } from "./saving";
import type { Chosen, Side } from "./side";
import { grouped, plural } from "./words";

/** So many readers, nodes or operators are listed; the rest is counted. */
const MOST = 12;

export class Inspector {
  readonly element = el("div", { class: "inspector" });

  constructor(private readonly app: App) {}

  show(): void {
    const { side } = this.app;
    const last = side.selection.at(-1);
    const parts = !last ? this.model(side) : side.selection.length > 1 ? this.several(side) : this.one(side, last);
    replace(this.element, ...parts);
    this.element.scrollTop = 0;
  }

  private one(side: Side, { kind, ref }: Chosen): Part[] {
    return kind === "node" ? this.node(side, ref) : kind === "room" ? this.room(side, ref) : this.value(side, ref);
  }

  private link(text: string, chosen: Chosen, model = this.app.active): HTMLElement {
    return button(text, () => this.app.jump(model, chosen), { class: "link" });
  }

  private nodeLink(side: Side, node: number): HTMLElement {
    return el(
      "span",
      { class: "node-link" },
      el("span", { class: "dim" }, side.graph.op(node).type),
      this.link(side.graph.nodeName(node), { kind: "node", ref: node }, side.graph.index),
    );
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
        nodes.inputs[node].map((value, at) => this.operand(side, value, `input ${at}`, "from")),
      ),
      section(
        "Read by its bodies",
        graph.captured(node).map((value) => this.operand(side, value, "", "from")),
      ),
      section(
        "Outputs",
        nodes.outputs[node].map((value, at) => this.operand(side, value, `output ${at}`, "to")),
      ),
      this.attributes(nodes.attributes[node]),
      section(
        "Bodies",
        nodes.bodies[node].map(([label, room]) => this.body(side, label, room)),
      ),
      this.commands(side, [node]),
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
      const figure = figures.node(node);
      if (figure === undefined) continue;
      const text = figures.text(node);
      list.append(
        el("dt", {}, figures.overlay.title),
        el("dd", {}, el("b", {}, figures.write(figure)), text ? el("small", { class: "dim" }, ` ${text}`) : null),
      );
    }
    return list.children.length ? [section("Measured", [list])] : [];
  }

  private change(side: Side, node: number): Part {
    const { differences } = this.app;
    const state = differences?.state(side.graph.index, node);
    if (!differences || !state) return null;
    const at = differences.change(side.graph.index, node);
    const there = differences.counterparts(side.graph.index, node);
    const other = this.app.sides[1 - side.graph.index];
    return section("Difference", [
      el(
        "p",
        {},
        STATE_SIGNS[state] ? el("span", { class: `sign ${groupOf(state)}` }, STATE_SIGNS[state]) : null,
        STATE_WORDS[state],
      ),
      ...(at < 0 ? [] : differences.changes[at].lines.map((line) => el("p", { class: "line" }, line))),
      there.length ? el("p", {}, `in ${other.graph.model.name}: `, ...this.some(other, there)) : null,
    ]);
  }

  private operand(side: Side, value: number, label: string, way: "from" | "to"): Part {
    const { graph } = side;
    if (value < 0) return el("div", { class: "operand dim" }, `${label}: left out`);
    const { kind, producer } = graph.model.values;
    const head = el(
      "div",
      {},
      this.link(graph.valueName(value), { kind: "value", ref: value }, graph.index),
      typeOf(side, value),
    );
    const ends = way === "to" ? graph.readers(value) : producer[value] >= 0 ? [producer[value]] : [];
    const words =
      way === "from"
        ? kind[value] === 1
          ? "graph input"
          : ""
        : kind[value] === 2
          ? "graph output"
          : ends.length
            ? ""
            : "not read";
    return el(
      "div",
      { class: "operand" },
      head,
      constantOf(side, value),
      ends.length || words
        ? el("div", { class: "ends" }, el("span", { class: "dim" }, `${way} `), words, ...this.some(side, ends))
        : null,
    );
  }

  private some(side: Side, nodes: number[]): Part[] {
    const links: Part[] = nodes.slice(0, MOST).map((node) => this.nodeLink(side, node));
    if (nodes.length > MOST) links.push(el("span", { class: "dim" }, ` and ${grouped(nodes.length - MOST)} more`));
    return links;
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

  // A room.

  private room(side: Side, room: number): Part[] {
    const { graph } = side;
    const one = graph.model.rooms[room];
    const nodes = graph.nodesWithin(room);
    const model = graph.index;
    const canOpen = graph.itemOfRoom[room] >= 0 && room !== side.room;
    const isOpen = side.opened.has(room);
    return [
      el("h2", {}, one.title),
      el("p", { class: "name" }, one.path),
      el(
        "p",
        { class: "buttons" },
        canOpen ? button(isOpen ? "Close" : "Open here", () => this.app.toggle(model, room), { key: "Enter" }) : null,
        room !== side.room ? button("Show alone", () => this.app.enter(model, room), { key: "Shift+Enter" }) : null,
      ),
      facts([
        ["kind", one.kind],
        ["nodes", grouped(one.count)],
        ["alike", one.repeats > 1 ? `${one.repeats} × this structure` : ""],
        ["called by", graph.hostOf[room] >= 0 ? graph.nodeName(graph.hostOf[room]) : ""],
      ]),
      ...this.roomFigures(side, room),
      this.ends(side, room, 2, "Inputs"),
      this.ends(side, room, 3, "Outputs"),
      this.operators(side, nodes),
      this.commands(side, nodes),
    ];
  }

  private roomFigures(side: Side, room: number): Part[] {
    const rows = this.app.figuresOf(side.graph.index).flatMap((figures): HTMLElement[] => {
      const figure = figures.room(room);
      if (!figure) return [];
      return [
        el(
          "div",
          {},
          facts([[figures.overlay.title, figures.writeRoom(figure)]]),
          el("div", {}, el("span", { class: "dim" }, "worst: "), this.nodeLink(side, figure.worstNode)),
        ),
      ];
    });
    const changes = this.app.differences?.room(side.graph.index, room);
    const words = GROUPS.filter((group) => changes?.[group])
      .map((group) => `${GROUP_SIGNS[group]} ${changes![group]} ${GROUP_WORDS[group]}`)
      .join(", ");
    return [
      ...(rows.length ? [section("Measured", rows)] : []),
      words ? section("Difference", [el("p", {}, words)]) : null,
    ];
  }

  private ends(side: Side, room: number, wanted: 2 | 3, title: string): Part {
    const { kind, ref } = side.graph.model.rooms[room].items;
    const values = ref.filter((value, at) => kind[at] === wanted && value >= 0);
    return section(
      title,
      values.map((value) =>
        el(
          "div",
          { class: "operand" },
          this.link(side.graph.valueName(value), { kind: "value", ref: value }, side.graph.index),
          typeOf(side, value),
        ),
      ),
    );
  }

  private operators(side: Side, nodes: number[]): Part {
    const counts = new Map<number, number>();
    for (const node of nodes)
      counts.set(side.graph.model.nodes.op[node], (counts.get(side.graph.model.nodes.op[node]) ?? 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1]);
    const rows = sorted.slice(0, MOST).map(([at, count]) => {
      const op = side.graph.model.ops[at];
      const bar = el("span", { class: "bar", "aria-hidden": "true" });
      style(bar, "width", `${Math.max(2, (count / sorted[0][1]) * 60)}px`);
      style(bar, "background", this.app.familyColour(op.family));
      return el(
        "div",
        { class: "share" },
        button(op.type, () => this.app.searchFor(`op:${op.type}`), { class: "link", title: `Find ${op.type}` }),
        bar,
        el("span", {}, grouped(count)),
      );
    });
    if (sorted.length > MOST) rows.push(el("div", { class: "dim" }, `and ${sorted.length - MOST} more`));
    return section("Operators", rows);
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
      section("Computed by", producer[value] >= 0 ? [this.nodeLink(side, producer[value])] : []),
      section("Read by", this.some(side, graph.readers(value))),
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
          .map((one) => el("p", {}, this.link(this.app.nameOf(side, one), one, side.graph.index))),
      ),
      this.operators(side, nodes),
      this.commands(side, nodes),
    ];
  }

  private model(side: Side): Part[] {
    const { model } = side.graph;
    const { scene } = this.app;
    const nodes = side.room ? side.graph.nodesWithin(side.room) : model.nodes.op.map((_, node) => node);
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
      this.operators(side, nodes),
      this.app.sides.length > 1
        ? section(
            "Go on",
            offersForTwo(this.app.sides[0].graph, this.app.sides[1].graph).map((offer) => this.offer(offer)),
          )
        : null,
    ];
  }

  // Commands.

  private commands(side: Side, nodes: number[]): Part {
    return section(
      "Go on",
      offers(side.graph, nodes, this.app.sides[1 - side.graph.index]?.graph).map((offer) => this.offer(offer)),
    );
  }

  private offer({ title, command, note }: Offer): HTMLElement {
    return el(
      "div",
      { class: "offer" },
      el(
        "div",
        { class: "offer-head" },
        el("span", {}, title),
        command ? button("Copy", () => copyCommand(this.app, command), { title: `Copy the command: ${title}` }) : null,
      ),
      command ? el("code", {}, command) : null,
      note ? el("small", { class: "dim" }, note) : null,
    );
  }
}
