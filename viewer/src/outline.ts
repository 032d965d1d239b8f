/** The items of the room that is shown, as a tree: what the canvas shows, for keyboards and screen readers, too. */

import type { App } from "./app";
import type { Frame } from "./compose";
import { el, style } from "./dom";
import { List, type Row } from "./list";
import type { Chosen } from "./side";
import type { Table } from "./print";
import { plural } from "./words";

interface Line {
  frame: Frame;
  item: number;
}

export class Outline {
  readonly element: HTMLElement;
  private readonly list: List;
  private lines: Line[] = [];
  private stale = true;
  /** The row that was opened or closed last: the list stays there. */
  private turned: Chosen | null = null;

  constructor(private readonly app: App) {
    this.list = new List({
      label: "Items of the level that is shown",
      role: "tree",
      rowHeight: 24,
      row: (index) => this.row(index),
      pick: (index, add) => this.pick(index, add),
      toggle: (index) => this.toggle(index),
      empty: "Nothing is in this level.",
    });
    this.element = this.list.element;
  }

  /** The picture changed; the tree is made when it is looked at. */
  changed(visible: boolean): void {
    this.stale = true;
    if (visible) this.show();
  }

  show(): void {
    if (this.stale) {
      this.lines = [];
      this.add(this.app.side.picture.root);
      this.stale = false;
    }
    this.list.fill(this.lines.length, this.current());
  }

  selected(visible: boolean): void {
    if (visible && !this.stale) this.list.setCurrent(this.current());
  }

  focus(): void {
    this.list.focus();
  }

  /** The rows as a table, for paper: items of inner levels are indented. */
  table(): Table {
    this.show();
    const { side } = this.app;
    const rows = this.lines.map((line) => {
      const { kind, ref } = this.chosen(line);
      const indent = "\u2003".repeat(line.frame.depth);
      if (kind === "room") {
        const { title, count } = side.graph.model.rooms[ref];
        return [indent + title, plural(count, "node"), side.paint.roomNotes(ref)[0] ?? ""];
      }
      if (kind === "value") return [indent + side.graph.valueName(ref), side.graph.typeText(ref), ""];
      return [indent + side.labels.node(ref).title, side.graph.nodeName(ref), side.paint.nodeNote(ref)];
    });
    return { title: "Items of this level", head: ["Item", "Name", ""], rows };
  }

  private add(frame: Frame): void {
    const { kind } = this.app.side.graph.model.rooms[frame.room].items;
    for (const item of frame.rows.entry) {
      if (item < 0 || kind[item] === 4) continue;
      this.lines.push({ frame, item });
      const inner = frame.inner.get(item);
      if (inner) this.add(inner);
    }
  }

  private chosen({ frame, item }: Line): Chosen {
    return this.app.side.chosenAt({ frame, item })!;
  }

  private current(): number {
    const last = this.app.side.selection.at(-1) ?? this.turned;
    if (!last) return -1;
    return this.lines.findIndex((line) => {
      const chosen = this.chosen(line);
      return chosen.kind === last.kind && chosen.ref === last.ref;
    });
  }

  private row(index: number): Row {
    const line = this.lines[index];
    const { side } = this.app;
    const { kind, ref } = side.graph.model.rooms[line.frame.room].items;
    const level = line.frame.depth + 1;
    const at = ref[line.item];
    if (kind[line.item] === 1) {
      const open = line.frame.inner.has(line.item);
      const room = side.graph.model.rooms[at];
      const sign = el("span", { class: "turn", "data-toggle": true, "aria-hidden": "true" }, open ? "▾" : "▸");
      return {
        level,
        expanded: open,
        parts: [sign, el("b", {}, room.title), el("span", { class: "dim end" }, plural(room.count, "node"))],
      };
    }
    const dot = el("span", { class: "dot", "aria-hidden": "true" });
    if (kind[line.item] === 0) {
      style(dot, "background", side.paint.node(at).strong);
      const label = side.labels.node(at);
      const name = side.graph.nodeName(at);
      const sign = side.paint.nodeSign(at);
      return {
        level,
        parts: [
          dot,
          el("b", {}, label.title),
          el("span", { class: "dim" }, name),
          sign ? el("span", { class: "end sign" }, sign.text) : "",
        ],
      };
    }
    const word = kind[line.item] === 2 ? "input" : "output";
    return { level, parts: [dot, el("span", { class: "tag" }, word), el("span", {}, side.graph.valueName(at))] };
  }

  private pick(index: number, add: boolean): void {
    this.app.choose(this.app.active, this.chosen(this.lines[index]), { show: true, add });
  }

  private toggle(index: number): void {
    const chosen = this.chosen(this.lines[index]);
    this.turned = chosen;
    if (chosen.kind === "room") this.app.toggle(this.app.active, chosen.ref);
  }
}
