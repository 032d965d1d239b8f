/** Makes the inspector's facts on a room. */

import type { App } from "./app";
import { GROUP_SIGNS, GROUP_WORDS, GROUPS } from "./differences";
import { button, el, style } from "./dom";
import { MOST, type Links } from "./inspector_links";
import { commands } from "./inspector_offers";
import { facts, section, typeOf, type Part } from "./inspector_parts";
import type { Side } from "./side";
import { grouped } from "./words";

export class RoomInspector {
  constructor(
    private readonly app: App,
    private readonly links: Links,
  ) {}

  parts(side: Side, room: number): Part[] {
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
      commands(this.app, side, nodes),
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
          el("div", {}, el("span", { class: "dim" }, "worst: "), this.links.node(side, figure.worstNode)),
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
          this.links.to(side.graph.valueName(value), { kind: "value", ref: value }, side.graph.index),
          typeOf(side, value),
        ),
      ),
    );
  }

  operators(side: Side, nodes: number[]): Part {
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
}
