/** The panel of an overlay: its nodes, or its levels where figures add up, worst first. */

import type { App } from "./app";
import { button, el, replace, style } from "./dom";
import { List, type Row } from "./list";
import type { OverlayFigures } from "./overlays";
import type { Table } from "./print";
import { scaleOf } from "./scales";
import type { Chosen } from "./side";
import { placeWords, stepped, type Step } from "./stepping";
import { grouped, plural } from "./words";

export class Figures {
  readonly element: HTMLElement;
  private readonly head = el("div", { class: "head" });
  private readonly chips = el("div", { class: "chips", role: "group", "aria-label": "What is listed" });
  private readonly list: List;
  private figures: OverlayFigures | null = null;
  private colour: (figure: number) => string = () => "";
  private colourOfLevel = this.colour;
  /** Whether levels are listed by their sums, not nodes. */
  private ofLevels = false;
  private at = -1;

  constructor(private readonly app: App) {
    this.list = new List({
      label: "By figure, worst first",
      role: "listbox",
      rowHeight: 40,
      row: (index) => this.row(index),
      pick: (index) => this.go({ at: index, turned: "" }),
      empty: "No figures: choose an overlay under “Colour by”. `onnxsmith view --with report.json` brings one along.",
    });
    this.element = el("div", { class: "tab" }, this.head, this.chips, this.list.element);
  }

  fill(figures: OverlayFigures | null, dark: boolean): void {
    const isNew = figures !== this.figures;
    this.figures = figures;
    if (isNew) {
      this.at = -1;
      this.ofLevels = false;
    }
    if (figures) {
      this.colourOfLevel = scaleOf(figures.overlay, dark, figures.sums).colour;
      this.colour = scaleOf(figures.overlay, dark).colour;
      replace(
        this.head,
        el("b", {}, figures.overlay.title),
        figures.overlay.from ? el("small", { class: "dim" }, figures.overlay.from) : null,
      );
    } else replace(this.head);
    this.showChips();
    this.list.fill(this.count, this.at);
  }

  private get count(): number {
    return (this.ofLevels ? this.figures?.levels : this.figures?.order)?.length ?? 0;
  }

  /** If figures add up, a level has their sum. Nodes and levels are listed apart, because a sum includes its nodes. */
  private showChips(): void {
    const { levels, order } = this.figures ?? { levels: [], order: [] };
    const made = (ofLevels: boolean, text: string, count: number): HTMLButtonElement => {
      const chip = button(`${text} ${grouped(count)}`, () => this.choose(ofLevels), { class: "chip" });
      chip.setAttribute("aria-pressed", String(this.ofLevels === ofLevels));
      return chip;
    };
    replace(this.chips, ...(levels.length ? [made(false, "Nodes", order.length), made(true, "Levels", levels.length)] : []));
  }

  private choose(ofLevels: boolean): void {
    this.ofLevels = ofLevels;
    this.at = -1;
    this.showChips();
    this.list.fill(this.count, -1);
    this.chips.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus(); // the pressed button was made anew
  }

  private row(index: number): Row {
    const { overlay, order, figures, levels } = this.figures!;
    const { graph } = this.app.sides[overlay.model];
    if (this.ofLevels) {
      const figure = this.figures!.room(levels[index])!;
      const { title, path } = graph.model.rooms[levels[index]];
      return line(this.colourOfLevel(figure.sum), `Σ ${this.figures!.write(figure.sum)}`, title, `${path}: ${plural(figure.count, "node")}`);
    }
    const row = order[index];
    const node = overlay.nodes[row];
    const name = `${graph.op(node).type} ${graph.nodeName(node)}`;
    return line(this.colour(figures[row]), this.figures!.writeNode(node), name, overlay.texts[row]);
  }

  /** The rows as a table, for paper. */
  table(): Table {
    const { figures } = this;
    if (!figures) return { title: "Figures", head: [], rows: [] };
    const { overlay } = figures;
    const { graph } = this.app.sides[overlay.model];
    if (this.ofLevels) {
      const rows = figures.levels.map((room) => {
        const { title, path } = graph.model.rooms[room];
        return [figures.writeRoom(figures.room(room)!), title, path];
      });
      return { title: overlay.title, head: ["Figure", "Level", "Path"], rows };
    }
    const rows = figures.order.map((row) => {
      const node = overlay.nodes[row];
      return [figures.writeNode(node), graph.op(node).type, graph.nodeName(node), overlay.texts[row]];
    });
    return { title: overlay.title, head: ["Figure", "Operator", "Node", "Remark"], rows };
  }

  step(by: number): void {
    if (this.count) this.go(stepped(this.at, by, this.count));
    else this.app.page.toast("There are no figures here");
  }

  private go(step: Step): void {
    this.at = step.at;
    this.list.setCurrent(step.at);
    const { overlay, order, levels } = this.figures!;
    const chosen: Chosen = this.ofLevels
      ? { kind: "room", ref: levels[step.at] }
      : { kind: "node", ref: overlay.nodes[order[step.at]] };
    this.app.jump(overlay.model, chosen);
    this.app.page.toast(placeWords(this.ofLevels ? "Level" : "Node", step, this.count, ` by ${overlay.title}`));
  }
}

function line(colour: string, figure: string, name: string, remark: string): Row {
  const dot = el("span", { class: "dot square", "aria-hidden": "true" });
  style(dot, "background", colour);
  return {
    class: "two",
    parts: [
      el("span", {}, dot, el("b", {}, figure), el("span", { class: "dim" }, name)),
      el("small", { class: "dim" }, remark || "\u00a0"),
    ],
  };
}
