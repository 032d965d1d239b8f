/** The panel of changes between two models. */

import type { App } from "./app";
import { STATE_SIGNS, STATE_WORDS, type Change, type State } from "./differences";
import { button, el, replace } from "./dom";
import { List } from "./list";
import { grouped } from "./words";

type Group = "added" | "removed" | "changed";
const GROUPS: Group[] = ["removed", "added", "changed"];

export function groupOf(state: State): Group {
  return state === "added" || state === "removed" ? state : "changed";
}

export class Changes {
  readonly element: HTMLElement;
  private readonly kinds = el("div", { class: "chips", role: "group", "aria-label": "Kinds of changes" });
  private readonly list: List;
  private shown: Change[] = [];
  private only: Group | null = null;
  private at = -1;

  constructor(private readonly app: App) {
    this.list = new List({
      label: "Changes",
      role: "listbox",
      rowHeight: 40,
      row: (index) => this.row(this.shown[index]),
      pick: (index) => this.go(index),
      empty: "The two models are equal, node by node.",
    });
    this.element = el("div", { class: "tab" }, this.kinds, this.list.element);
    this.fill();
  }

  private fill(): void {
    const all = this.app.differences?.changes ?? [];
    this.shown = all.filter((change) => !this.only || groupOf(change.state) === this.only);
    this.at = -1;
    const chip = (group: Group | null, text: string): HTMLButtonElement => {
      const count = group ? all.filter((change) => groupOf(change.state) === group).length : all.length;
      const made = button(`${text} ${grouped(count)}`, () => this.choose(group), { class: `chip ${group ?? ""}` });
      made.setAttribute("aria-pressed", String(this.only === group));
      return made;
    };
    replace(
      this.kinds,
      ...(all.length
        ? [
            chip(null, "All"),
            ...GROUPS.map((group) => chip(group, `${STATE_SIGNS[group === "changed" ? "operator" : group]} ${group}`)),
          ]
        : []),
    );
    this.list.fill(this.shown.length);
  }

  private choose(group: Group | null): void {
    this.only = group;
    this.fill();
  }

  private row(change: Change) {
    const model = change.nodes[1] >= 0 ? 1 : 0;
    const node = change.nodes[model];
    const { graph } = this.app.sides[model];
    const sign = el(
      "span",
      { class: `sign ${groupOf(change.state)}`, "aria-hidden": "true" },
      STATE_SIGNS[change.state],
    );
    return {
      class: "two",
      parts: [
        el("span", {}, sign, el("b", {}, graph.op(node).type), el("span", { class: "dim" }, graph.nodeName(node))),
        el("small", { class: "dim" }, change.lines[0] ?? STATE_WORDS[change.state]),
      ],
    };
  }

  /** Selects the row of a node that was chosen in a picture. */
  follow(model: number, node: number): void {
    const change = this.app.differences?.changes[this.app.differences.change(model, node)];
    const at = change ? this.shown.indexOf(change) : -1;
    if (at < 0) return;
    this.at = at;
    this.list.setCurrent(at);
  }

  show(): void {
    this.list.fill(this.shown.length, this.at);
  }

  step(by: number): void {
    const count = this.shown.length;
    if (count) this.go((this.at + by + count + (this.at < 0 && by < 0 ? 1 : 0)) % count);
  }

  private go(index: number): void {
    this.at = index;
    this.list.setCurrent(index);
    const { nodes, state } = this.shown[index];
    const model = nodes[this.app.active] >= 0 ? this.app.active : 1 - this.app.active;
    this.app.jump(model, { kind: "node", ref: nodes[model] });
    this.app.say(`Change ${index + 1} of ${this.shown.length}: ${STATE_WORDS[state]}`);
  }
}
