/** A list of any length: only the rows in sight are elements of the page. */

import { el, replace, style } from "./dom";

export interface Row {
  /** The content of the row. */
  parts: (Node | string)[];
  class?: string;
  /** Depth and state in a tree. */
  level?: number;
  expanded?: boolean;
}

export interface ListOptions {
  label: string;
  role: "listbox" | "tree";
  rowHeight: number;
  row(index: number): Row;
  /** `add`: a row was clicked with Shift, to be chosen besides the others. */
  pick(index: number, add: boolean): void;
  /** Opens or closes a row of a tree. */
  toggle?(index: number): void;
  point?(index: number): void;
  empty: string;
}

/** Rows beyond the visible ones, so that scrolling shows no gaps. */
const MORE_ROWS = 6;

export class List {
  readonly element: HTMLElement;
  private readonly spacer = el("div", { class: "spacer", role: "presentation" });
  private readonly nothing: HTMLElement;
  private readonly scroller: HTMLElement;
  private count = 0;
  private current = -1;
  /** What a button was pressed on: the sign that opens a row, or the row. */
  private pressed: "sign" | "row" | null = null;
  private static made = 0;
  private readonly id = `list${List.made++}`;

  constructor(private readonly options: ListOptions) {
    this.scroller = el(
      "div",
      { class: "list", role: options.role, "aria-label": options.label, tabindex: 0 },
      this.spacer,
    );
    this.nothing = el("p", { class: "nothing" }, options.empty);
    this.element = el("div", { class: "listing" }, this.scroller, this.nothing);
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.scroller.addEventListener("pointerdown", (event) => {
      this.pressed = (event.target as Element).closest("[data-toggle]") ? "sign" : "row";
    });
    this.scroller.addEventListener("click", (event) => this.click(event));
    this.scroller.addEventListener("mouseover", (event) => nameWhole(event.target as Element));
    if (options.point) {
      this.scroller.addEventListener("mousemove", (event) => this.options.point!(this.rowOf(event)));
      this.scroller.addEventListener("mouseleave", () => this.options.point!(-1));
    }
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  /** Shows so many rows anew; `current` is the selected one or -1. */
  fill(count: number, current = -1): void {
    this.count = count;
    this.current = current;
    style(this.spacer, "height", `${count * this.options.rowHeight}px`);
    this.scroller.hidden = count === 0;
    this.nothing.hidden = count > 0;
    if (current >= 0) this.reveal(current);
    this.draw();
  }

  setCurrent(index: number): void {
    this.current = index;
    if (index >= 0) this.reveal(index);
    this.draw();
  }

  focus(): void {
    this.scroller.focus();
  }

  private reveal(index: number): void {
    const { rowHeight } = this.options;
    const height = this.scroller.clientHeight || 400;
    const top = index * rowHeight;
    if (top < this.scroller.scrollTop || top + rowHeight > this.scroller.scrollTop + height)
      this.scroller.scrollTop = top - height / 3;
  }

  draw(): void {
    const { rowHeight } = this.options;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / rowHeight) - MORE_ROWS);
    const last = Math.min(
      this.count,
      Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / rowHeight) + MORE_ROWS,
    );
    const rows: Node[] = [];
    for (let index = first; index < last; index++) rows.push(this.elementOf(index));
    if (this.current >= 0 && this.current < this.count && (this.current < first || this.current >= last))
      rows.push(this.elementOf(this.current));
    replace(this.spacer, ...rows);
    if (this.current >= 0 && this.current < this.count)
      this.scroller.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private elementOf(index: number): HTMLElement {
    const row = this.options.row(index);
    const isTree = this.options.role === "tree";
    const made = el(
      "div",
      {
        id: `${this.id}-${index}`,
        class: `row ${row.class ?? ""}${index === this.current ? " current" : ""}`,
        role: isTree ? "treeitem" : "option",
        "aria-selected": String(index === this.current),
        "aria-setsize": isTree ? undefined : this.count,
        "aria-posinset": isTree ? undefined : index + 1,
        "aria-level": isTree ? (row.level ?? 1) : undefined,
        "aria-expanded": row.expanded === undefined ? undefined : String(row.expanded),
        "data-index": index,
      },
      // Between the parts stand spaces: they are not seen, but heard.
      ...row.parts.flatMap((part) => [part, " "]),
    );
    style(made, "top", `${index * this.options.rowHeight}px`);
    style(made, "height", `${this.options.rowHeight}px`);
    if (row.level) style(made, "padding-left", `${6 + Math.min(12, row.level - 1) * 13}px`);
    return made;
  }

  /** The row at the height of the pointer. Elements of rows come and go, also between the press and the release of a button. */
  private rowOf(event: MouseEvent): number {
    const index = Math.floor((event.clientY - this.spacer.getBoundingClientRect().top) / this.options.rowHeight);
    return index >= 0 && index < this.count ? index : -1;
  }

  private click(event: MouseEvent): void {
    // A click of assistive technology has no press before it and no place, but an element.
    const target = event.target as Element;
    const index = this.pressed
      ? this.rowOf(event)
      : Number(target.closest("[data-index]")?.getAttribute("data-index") ?? -1);
    const isSign = this.pressed ? this.pressed === "sign" : target.closest("[data-toggle]") !== null;
    this.pressed = null;
    if (index < 0) return;
    if (isSign && this.options.toggle) this.options.toggle(index);
    else {
      this.current = index;
      this.options.pick(index, event.shiftKey);
      this.draw();
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.options.rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.count,
      End: this.count,
    };
    const step = steps[event.key];
    if (step !== undefined) this.setCurrent(Math.min(this.count - 1, Math.max(0, this.current + step)));
    else if (this.current >= 0 && (event.key === "Enter" || event.key === " ")) this.options.pick(this.current, event.shiftKey);
    else if (this.current >= 0 && this.options.toggle && (event.key === "ArrowRight" || event.key === "ArrowLeft"))
      this.turn(event.key === "ArrowRight");
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private turn(open: boolean): void {
    const { expanded } = this.options.row(this.current);
    if (expanded !== undefined && expanded !== open) this.options.toggle!(this.current);
  }
}

/** Gives a row whose words are cut off a tooltip with all of them. */
function nameWhole(target: Element): void {
  const row = target.closest<HTMLElement>("[data-index]");
  if (!row || row.title) return;
  const parts = [row, ...row.querySelectorAll<HTMLElement>("*")];
  if (parts.some((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0))
    row.title = [...row.children].map((part) => part.textContent?.trim()).join("\n");
}
