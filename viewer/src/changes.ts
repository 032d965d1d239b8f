/** The panel of changes between two models. */

import type { App } from "./app";
import { GROUP_SIGNS, GROUP_WORDS, GROUPS, groupOf, STATE_SIGNS, STATE_WORDS, type Change, type Group } from "./differences";
import { button, el, replace } from "./dom";
import { List } from "./list";
import type { Table } from "./print";
import { placeWords, stepped, type Step } from "./stepping";
import type { Chosen } from "./side";
import { grouped } from "./words";

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
      pick: (index) => this.go({ at: index, turned: "" }),
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
            ...GROUPS.filter((group) => group !== "otherwise" || this.app.differences?.hasRegions).map((group) =>
              chip(group, `${GROUP_SIGNS[group]} ${GROUP_WORDS[group]}`),
            ),
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
    const model = change.nodes[1].length ? 1 : 0;
    const [node] = change.nodes[model];
    const { graph } = this.app.sides[model];
    const title = change.state === "otherwise" ? this.operators(change) : graph.op(node).type;
    const sign = el(
      "span",
      { class: `sign ${groupOf(change.state) ?? ""}`, "aria-hidden": "true" },
      STATE_SIGNS[change.state],
    );
    return {
      class: "two",
      parts: [
        el("span", {}, sign, el("b", {}, title), el("span", { class: "dim" }, graph.nodeName(node))),
        el("small", { class: "dim" }, change.lines[0] ?? STATE_WORDS[change.state]),
      ],
    };
  }

  /** The operators of a region in both models: "Split → Slice". */
  private operators({ nodes }: Change): string {
    const ops = nodes.map((list, model) => [...new Set(list.map((node) => this.app.sides[model].graph.op(node).type))]);
    const short = (list: string[]): string => (list.length > 2 ? `${list[0]}, …` : list.join(", "));
    return ops
      .filter((list) => list.length)
      .map(short)
      .join(" → ");
  }

  /** Selects the row of a node that was chosen in a picture. */
  follow(model: number, node: number): void {
    if (this.shown[this.at]?.nodes[model].includes(node)) return; // a node may lie in two regions
    const change = this.app.differences?.changes[this.app.differences.change(model, node)];
    const at = change ? this.shown.indexOf(change) : -1;
    if (at < 0) return;
    this.at = at;
    this.list.setCurrent(at);
  }

  show(): void {
    this.list.fill(this.shown.length, this.at);
  }

  /** The rows as a table, for paper. */
  table(): Table {
    const names = (model: number, nodes: number[]): string =>
      nodes.map((node) => this.app.nameOf(this.app.sides[model], { kind: "node", ref: node })).join(", ");
    const rows = this.shown.map(({ nodes, state, lines }) => [
      `${STATE_SIGNS[state]} ${STATE_WORDS[state]}`,
      names(0, nodes[0]),
      names(1, nodes[1]),
      lines.join("; "),
    ]);
    return { title: "Changes", head: ["Change", "Old", "New", "What"], rows };
  }

  step(by: number): void {
    if (this.shown.length) this.go(stepped(this.at, by, this.shown.length));
    else this.app.page.toast("There are no differences here");
  }

  private go(step: Step): void {
    this.at = step.at;
    this.list.setCurrent(step.at);
    const { nodes, state, lines } = this.shown[step.at];
    const model = nodes[this.app.active].length ? this.app.active : 1 - this.app.active;
    this.app.jumpToAll(model, asChosen(nodes[model]), asChosen(nodes[1 - model]));
    const words = `${placeWords("Difference", step, this.shown.length)}: ${STATE_WORDS[state]}`;
    this.app.page.toast(words);
    if (state === "otherwise") this.app.say(`${words}, ${lines[0]}`);
  }
}

function asChosen(nodes: number[]): Chosen[] {
  return nodes.map((ref) => ({ kind: "node", ref }));
}
