/** The panel of an overlay: its nodes, worst first. */

import type { App } from "./app";
import { el, replace, style } from "./dom";
import { List } from "./list";
import type { OverlayFigures } from "./overlays";
import type { Table } from "./print";
import { scaleOf } from "./scales";
import { placeWords, stepped, type Step } from "./stepping";

export class Figures {
  readonly element: HTMLElement;
  private readonly head = el("div", { class: "head" });
  private readonly list: List;
  private figures: OverlayFigures | null = null;
  private colour: (figure: number) => string = () => "";
  private at = -1;

  constructor(private readonly app: App) {
    this.list = new List({
      label: "Nodes by figure, worst first",
      role: "listbox",
      rowHeight: 40,
      row: (index) => this.row(index),
      pick: (index) => this.go({ at: index, turned: "" }),
      empty: "No figures: choose an overlay under “Colour by”. `onnxsmith view --with report.json` brings one along.",
    });
    this.element = el("div", { class: "tab" }, this.head, this.list.element);
  }

  fill(figures: OverlayFigures | null, dark: boolean): void {
    const isNew = figures !== this.figures;
    this.figures = figures;
    if (isNew) this.at = -1;
    if (figures) {
      this.colour = scaleOf(figures.overlay, dark).colour;
      replace(
        this.head,
        el("b", {}, figures.overlay.title),
        figures.overlay.from ? el("small", { class: "dim" }, figures.overlay.from) : null,
      );
    } else replace(this.head);
    this.list.fill(figures?.order.length ?? 0, this.at);
  }

  private row(index: number) {
    const { overlay, order, figures } = this.figures!;
    const row = order[index];
    const node = overlay.nodes[row];
    const { graph } = this.app.sides[overlay.model];
    const dot = el("span", { class: "dot square", "aria-hidden": "true" });
    style(dot, "background", this.colour(figures[row]));
    const text = overlay.texts[row];
    return {
      class: "two",
      parts: [
        el(
          "span",
          {},
          dot,
          el("b", {}, this.figures!.writeNode(node)),
          el("span", { class: "dim" }, `${graph.op(node).type} ${graph.nodeName(node)}`),
        ),
        el("small", { class: "dim" }, text || "\u00a0"),
      ],
    };
  }

  /** The rows as a table, for paper. */
  table(): Table {
    const { figures } = this;
    if (!figures) return { title: "Figures", head: [], rows: [] };
    const { overlay } = figures;
    const { graph } = this.app.sides[overlay.model];
    const rows = figures.order.map((row) => {
      const node = overlay.nodes[row];
      return [figures.writeNode(node), graph.op(node).type, graph.nodeName(node), overlay.texts[row]];
    });
    return { title: overlay.title, head: ["Figure", "Operator", "Node", "Remark"], rows };
  }

  step(by: number): void {
    const count = this.figures?.order.length ?? 0;
    if (count) this.go(stepped(this.at, by, count));
    else this.app.page.toast("There are no figures here");
  }

  private go(step: Step): void {
    this.at = step.at;
    this.list.setCurrent(step.at);
    const { overlay, order } = this.figures!;
    this.app.jump(overlay.model, { kind: "node", ref: overlay.nodes[order[step.at]] });
    this.app.page.toast(placeWords("Node", step, order.length, ` by ${overlay.title}`));
  }
}
