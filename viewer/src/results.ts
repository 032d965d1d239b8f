/** The panel of search results: counts by kind and by model, and the list. */

import type { App } from "./app";
import { button, el, replace } from "./dom";
import { List } from "./list";
import { KINDS, type Kind } from "./query";
import { search, type Result } from "./search";
import type { Table } from "./print";
import type { Chosen } from "./side";
import { placeWords, stepped, type Step } from "./stepping";
import { grouped, SIDE_WORDS } from "./words";

const KIND_WORDS: Record<Kind, string> = {
  name: "Names",
  operator: "Operators",
  tensor: "Tensors",
  type: "Types",
  attribute: "Attributes",
  module: "Modules",
  source: "Source lines",
  room: "Levels",
  reader: "Readers",
};

/** A result, and the model that it is of. */
interface Found extends Result {
  model: number;
}

export class Results {
  readonly element: HTMLElement;
  private readonly kinds = el("div", { class: "chips", role: "group", "aria-label": "Kinds of results" });
  private readonly list: List;
  private found = new Map<Kind, Found[]>();
  private only: Kind | null = null;
  private onlyModel: number | null = null;
  private shown: Found[] = [];
  private at = -1;

  /** `changed` is called when the listed results, or the chosen result, change. */
  constructor(
    private readonly app: App,
    private readonly changed: () => void,
  ) {
    this.list = new List({
      label: "Search results",
      role: "listbox",
      rowHeight: 40,
      row: (index) => this.row(this.shown[index]),
      pick: (index) => this.go({ at: index, turned: "" }),
      empty:
        "Nothing found. Search for a name, an operator, a shape such as “3×224”, a dtype, an attribute such as “strides=2”, a module or a source line. Of several words all have to hold: “op:conv 3x3”. The help (?) lists the forms.",
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
    this.found = new Map();
    this.app.sides.forEach(({ graph }, model) => {
      for (const [kind, results] of search(graph, text))
        this.found.set(kind, [...(this.found.get(kind) ?? []), ...results.map((one) => ({ ...one, model }))]);
    });
    this.only = this.onlyModel = null;
    this.refill();
  }

  private refill(): void {
    const all = withoutRepeats(KINDS.flatMap((kind) => this.found.get(kind) ?? []));
    const ofKind = this.only ? (this.found.get(this.only) ?? []) : all;
    this.shown = ofKind.filter(({ model }) => this.onlyModel === null || model === this.onlyModel);
    this.at = -1;
    replace(this.kinds, ...(all.length ? [...this.kindChips(all.length), ...this.modelChips(ofKind)] : []));
    this.list.fill(this.shown.length);
    this.app.highlight(this.app.sides.map((_, at) => this.shown.filter(({ model }) => model === at).map(chosenOf)));
    this.changed();
  }

  private kindChips(all: number): HTMLButtonElement[] {
    const made = (kind: Kind | null, text: string, count: number): HTMLButtonElement =>
      chip(`${text} ${grouped(count)}`, this.only === kind, () => {
        this.only = kind;
        this.refill();
      });
    return [
      made(null, "All", all),
      ...KINDS.flatMap((kind) => {
        const count = this.found.get(kind)?.length;
        return count ? [made(kind, KIND_WORDS[kind], count)] : [];
      }),
    ];
  }

  /** With two models, how many results each has; pressed, only those of one are listed. */
  private modelChips(results: Found[]): HTMLButtonElement[] {
    if (this.app.sides.length < 2) return [];
    return this.app.sides.map((_, at) => {
      const count = results.filter(({ model }) => model === at).length;
      return chip(`in ${SIDE_WORDS[at]} ${grouped(count)}`, this.onlyModel === at, () => {
        this.onlyModel = this.onlyModel === at ? null : at;
        this.refill();
      });
    });
  }

  private row({ kind, chosen, text, model }: Found) {
    const { graph } = this.app.sides[model];
    const title = chosen.kind === "node" ? graph.op(chosen.ref).type : chosen.kind === "room" ? "level" : "tensor";
    const name =
      chosen.kind === "node"
        ? graph.nodeName(chosen.ref)
        : chosen.kind === "value"
          ? graph.valueName(chosen.ref)
          : text;
    const second =
      kind === "name" || kind === "room"
        ? chosen.kind === "node"
          ? this.where(model, chosen.ref)
          : (graph.model.rooms[chosen.ref]?.path ?? "")
        : text;
    return {
      class: "two",
      parts: [
        el("span", {}, el("b", {}, title), el("span", { class: "dim" }, name)),
        el("small", { class: "dim" }, this.app.sides.length > 1 ? `${SIDE_WORDS[model]} · ${second}` : second),
      ],
    };
  }

  /** The rows as a table, for paper. */
  table(): Table {
    const rows = this.shown.map(({ kind, chosen, text, model }) => {
      const side = this.app.sides[model];
      const place = chosen.kind === "node" ? this.where(model, chosen.ref) : "";
      return [KIND_WORDS[kind], this.app.nameOf(side, chosen), text, place];
    });
    return { title: "Found", head: ["Kind", "What", "Matched", "Where"], rows };
  }

  private where(model: number, node: number): string {
    const { graph } = this.app.sides[model];
    const room = graph.model.nodes.room[node];
    return room ? `in ${graph.model.rooms[room].path || graph.model.rooms[room].title}` : "in the main graph";
  }

  /** The next result, or the one before; starts again at the end. */
  step(by: number): void {
    if (this.shown.length) this.go(stepped(this.at, by, this.shown.length));
    else this.app.page.toast("Nothing is found: / searches");
  }

  private go(step: Step): void {
    this.at = step.at;
    this.list.setCurrent(step.at);
    const { model, chosen } = this.shown[step.at];
    this.app.jump(model, chosen);
    this.changed();
    this.app.page.toast(placeWords("Result", step, this.shown.length));
  }
}

/** A node that matches in several ways is one result. */
function withoutRepeats(results: Found[]): Found[] {
  const seen = new Set<string>();
  return results.filter(({ model, chosen: { kind, ref } }) => {
    const key = `${model} ${kind} ${ref}`;
    return !seen.has(key) && seen.add(key);
  });
}

function chosenOf({ chosen }: Found): Chosen {
  return chosen;
}

function chip(text: string, pressed: boolean, act: () => void): HTMLButtonElement {
  const made = button(text, act, { class: "chip" });
  made.setAttribute("aria-pressed", String(pressed));
  return made;
}
