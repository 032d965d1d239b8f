/** The panel of the captured program: its lines, and the nodes that came from each. */

import type { App } from "./app";
import { el, replace } from "./dom";
import { List } from "./list";
import type { Table } from "./print";

const NONE: ReadonlySet<number> = new Set();

export class ProgramPanel {
  readonly element: HTMLElement;
  private readonly list: List;
  private readonly source = el("div", { class: "head" });
  private readonly lineOfNode = new Map<number, number>();
  private pointed = -1;

  constructor(private readonly app: App) {
    this.list = new List({
      label: "Lines of the program",
      role: "listbox",
      rowHeight: 22,
      row: (index) => this.row(index),
      pick: (index) => this.go(index),
      point: (index) => this.point(index),
      empty: "The scene has no captured program.",
    });
    app.scene.program?.lines.forEach((line, at) => line.nodes.forEach((node) => this.lineOfNode.set(node, at)));
    this.element = el("div", { class: "tab" }, this.source, this.list.element);
    this.describe(-1);
  }

  show(): void {
    const last = this.app.sides[0].selection.at(-1);
    this.list.fill(
      this.app.scene.program?.lines.length ?? 0,
      last?.kind === "node" ? (this.lineOfNode.get(last.ref) ?? -1) : -1,
    );
  }

  /** Shows the line from which a node came. */
  follow(node: number): void {
    const at = this.lineOfNode.get(node) ?? -1;
    this.list.setCurrent(at);
    this.describe(at);
  }

  /** The lines as a table, for paper. */
  table(): Table {
    const { graph } = this.app.sides[0];
    const rows = (this.app.scene.program?.lines ?? []).map((line, at) => [
      String(at + 1),
      line.text || line.name,
      line.nodes.map((node) => graph.nodeName(node)).join(", "),
    ]);
    return { title: "Program", head: ["", "Line", "Nodes"], rows };
  }

  private row(index: number) {
    const line = this.app.scene.program!.lines[index];
    return {
      class: `code${line.nodes.length ? "" : " without"}`,
      parts: [
        el("span", { class: "number", "aria-hidden": "true" }, String(index + 1)),
        line.text || line.name,
        line.nodes.length ? el("span", { class: "end dim" }, String(line.nodes.length)) : "",
      ],
    };
  }

  /** The text above the lines: the origin of the program, or the source of a line. */
  private describe(at: number): void {
    const { program, models } = this.app.scene;
    const line = program?.lines[at];
    const source = line && line.source >= 0 ? models[0].sources[line.source] : null;
    const module = line && line.module >= 0 ? models[0].modules[line.module].path : "";
    if (!line) replace(this.source, el("small", { class: "dim" }, program?.from ?? ""));
    else
      replace(
        this.source,
        el(
          "small",
          { class: "dim" },
          [module, source && `${source.file}:${source.line}`].filter(Boolean).join("  ·  ") || "source unknown",
        ),
        source?.text ? el("code", {}, source.text.trim()) : null,
      );
  }

  private point(index: number): void {
    if (index === this.pointed) return;
    this.pointed = index;
    this.app.point(index < 0 ? NONE : new Set(this.app.scene.program!.lines[index].nodes));
    if (index >= 0) this.describe(index);
  }

  private go(index: number): void {
    this.describe(index);
    const { nodes } = this.app.scene.program!.lines[index];
    if (!nodes.length) this.app.refuse("No node came from this line");
    else
      this.app.jumpToAll(
        0,
        nodes.map((ref) => ({ kind: "node", ref })),
      );
  }
}
