/** Links of the inspector to nodes, values and rooms. */

import type { App } from "./app";
import { button, el } from "./dom";
import type { Part } from "./inspector_parts";
import type { Chosen, Side } from "./side";
import { grouped } from "./words";

/** So many readers, nodes or operators are listed; the rest is counted. */
export const MOST = 12;

export class Links {
  constructor(private readonly app: App) {}

  to(text: string, chosen: Chosen, model = this.app.active): HTMLElement {
    return button(text, () => this.app.jump(model, chosen), { class: "link" });
  }

  node(side: Side, node: number): HTMLElement {
    return el(
      "span",
      { class: "node-link" },
      el("span", { class: "dim" }, side.graph.op(node).type),
      this.to(side.graph.nodeName(node), { kind: "node", ref: node }, side.graph.index),
    );
  }

  /** Links to the first nodes, and a button for the others: `more` lists all of them, else they follow in place. */
  nodes(side: Side, nodes: number[], more?: () => void): Part[] {
    const links: Part[] = nodes.slice(0, MOST).map((node) => this.node(side, node));
    if (nodes.length <= MOST) return links;
    const rest = button(`and ${grouped(nodes.length - MOST)} more`, more ?? (() => rest.replaceWith(...others())), {
      class: "link",
      title: more ? "List all of them: n goes from one to the next" : "Show all of them",
    });
    const others = (): HTMLElement[] => nodes.slice(MOST).map((node) => this.node(side, node));
    return [...links, rest];
  }

  /** Lists the nodes that read a value as search results. */
  private list(side: Side, value: number): void {
    this.app.searchFor(`reads:${side.graph.valueName(value)}`);
  }

  /** Links to the nodes that read a value; a long list is shown as search results. */
  readers(side: Side, value: number, nodes = side.graph.readers(value)): Part[] {
    return this.nodes(side, nodes, () => this.list(side, value));
  }
}
