/** The panel of search results: counts by kind, and the list. */

import type { App } from "./app";
import { button, el, replace } from "./dom";
import { List } from "./list";
import { KINDS, search, type Kind, type Result } from "./search";
import { grouped } from "./words";

const KIND_WORDS: Record<Kind, string> = {
  name: "Names",
  operator: "Operators",
  tensor: "Tensors",
  type: "Types",
  module: "Modules",
  source: "Source lines",
  room: "Rooms",
};

export class Results {
  readonly element: HTMLElement;
  private readonly kinds = el("div", { class: "chips", role: "group", "aria-label": "Kinds of results" });
  private readonly list: List;
  private found = new Map<Kind, Result[]>();
  private only: Kind | null = null;
  private shown: Result[] = [];
  private at = -1;

  constructor(private readonly app: App) {
    this.list = new List({
      label: "Search results",
      role: "listbox",
      rowHeight: 40,
      row: (index) => this.row(this.shown[index]),
      pick: (index) => this.go(index),
      empty:
        "Nothing found. Search for a name, an operator, a shape such as “3×224”, a dtype, a module or a source line; “op:conv” looks at operators only.",
    });
    this.element = el("div", { class: "tab" }, this.kinds, this.list.element);
  }

  get count(): number {
    return this.shown.length;
  }

  get position(): number {
    return this.at;
  }

  query(text: string): void {
    this.found = search(this.app.side.graph, text);
    this.only = null;
    this.refill();
  }

  private refill(): void {
    this.shown = this.only
      ? (this.found.get(this.only) ?? [])
      : withoutRepeats(KINDS.flatMap((kind) => this.found.get(kind) ?? []));
    this.at = -1;
    const all = this.only ? withoutRepeats([...this.found.values()].flat()).length : this.shown.length;
    const chip = (kind: Kind | null, text: string, count: number): HTMLButtonElement => {
      const made = button(`${text} ${grouped(count)}`, () => this.choose(kind), { class: "chip" });
      made.setAttribute("aria-pressed", String(this.only === kind));
      return made;
    };
    replace(
      this.kinds,
      ...(all
        ? [
            chip(null, "All", all),
            ...[...this.found].map(([kind, results]) => chip(kind, KIND_WORDS[kind], results.length)),
          ]
        : []),
    );
    this.list.fill(this.shown.length);
    this.app.highlight(this.shown.map((result) => result.chosen));
  }

  private choose(kind: Kind | null): void {
    this.only = kind;
    this.refill();
  }

  private row({ kind, chosen, text }: Result) {
    const { graph } = this.app.side;
    const title = chosen.kind === "node" ? graph.op(chosen.ref).type : chosen.kind === "room" ? "room" : "tensor";
    const name =
      chosen.kind === "node"
        ? graph.nodeName(chosen.ref)
        : chosen.kind === "value"
          ? graph.valueName(chosen.ref)
          : text;
    const second =
      kind === "name" || kind === "room"
        ? chosen.kind === "node"
          ? this.where(chosen.ref)
          : (graph.model.rooms[chosen.ref]?.path ?? "")
        : text;
    return {
      class: "two",
      parts: [
        el("span", {}, el("b", {}, title), el("span", { class: "dim" }, name)),
        el("small", { class: "dim" }, second),
      ],
    };
  }

  private where(node: number): string {
    const { graph } = this.app.side;
    const room = graph.model.nodes.room[node];
    return room ? `in ${graph.model.rooms[room].path || graph.model.rooms[room].title}` : "in the main graph";
  }

  /** The next result, or the one before; starts again at the end. */
  step(by: number): void {
    if (this.shown.length)
      this.go((this.at + by + this.shown.length + (this.at < 0 && by < 0 ? 1 : 0)) % this.shown.length);
  }

  private go(index: number): void {
    this.at = index;
    this.list.setCurrent(index);
    this.app.jump(this.app.active, this.shown[index].chosen);
    this.app.say(`Result ${index + 1} of ${this.shown.length}`);
  }
}

/** A node that matches in several ways is one result. */
function withoutRepeats(results: Result[]): Result[] {
  const seen = new Set<string>();
  return results.filter(({ chosen: { kind, ref } }) => !seen.has(`${kind}${ref}`) && seen.add(`${kind}${ref}`));
}
