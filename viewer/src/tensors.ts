/** The panel of stored tensors: initializers and constants with their bytes, the largest first, each with what reads it. */

import type { App } from "./app";
import { button, el, replace } from "./dom";
import { List, type Row } from "./list";
import type { Table } from "./print";
import { compared, fits, storedTensors, totalBytes, type Order, type Stored } from "./stored";
import { grouped, inBytes, share } from "./words";

const ORDERS: [Order, string][] = [
  ["bytes", "Size"],
  ["name", "Name"],
  ["dtype", "Dtype"],
  ["shape", "Shape"],
  ["readers", "Readers"],
];

export class Tensors {
  readonly element: HTMLElement;
  private readonly head = el("div", { class: "head", "aria-live": "polite" });
  private readonly orders = el("div", { class: "chips", role: "group", "aria-label": "Order" });
  private readonly filter: HTMLInputElement;
  private readonly list: List;
  private order: Order = "bytes";
  private reversed = false;
  private model = -1;
  private all: Stored[] = [];
  private total = 0;
  private shown: Stored[] = [];
  private at = -1;
  /** The reader of the chosen tensor that was visited last. */
  private reader = -1;

  constructor(private readonly app: App) {
    this.filter = el("input", {
      type: "text",
      placeholder: "Filter by name, shape, dtype or reader",
      "aria-label": "Filter stored tensors by name, shape, dtype or reader",
      spellcheck: "false",
      autocomplete: "off",
    });
    this.filter.addEventListener("input", () => this.refill());
    this.filter.addEventListener("keydown", (event) => this.key(event));
    this.list = new List({
      label: "Stored tensors",
      role: "listbox",
      rowHeight: 40,
      row: (index) => this.row(this.shown[index]),
      pick: (index) => this.go(index),
      empty: "No stored tensor is listed here.",
    });
    const field = el("div", { class: "filter" }, this.filter);
    this.element = el("div", { class: "tab" }, field, this.orders, this.head, this.list.element);
  }

  /** Shows the tensors of the model that is active. */
  show(): void {
    if (this.model === this.app.active) return this.list.fill(this.shown.length, this.at);
    this.model = this.app.active;
    this.all = storedTensors(this.app.side.graph);
    this.total = totalBytes(this.all);
    this.refill();
  }

  private refill(): void {
    const words = this.filter.value.trim();
    const found = words ? this.all.filter((one) => fits(one, words)) : [...this.all];
    found.sort((a, b) => compared(this.order, a, b));
    this.shown = this.reversed ? found.reverse() : found;
    this.at = this.reader = -1;
    replace(
      this.orders,
      ...ORDERS.map(([order, text]) => {
        const isOn = order === this.order;
        const made = button(isOn ? `${text} ${this.reversed ? "↑" : "↓"}` : text, () => this.sortBy(order), {
          class: "chip",
          title: isOn ? `By ${text.toLowerCase()}: reverse the order` : `Sort by ${text.toLowerCase()}`,
        });
        made.setAttribute("aria-pressed", String(isOn));
        return made;
      }),
    );
    const bytes = totalBytes(this.shown);
    const part = words ? ` of ${grouped(this.all.length)}` : "";
    replace(this.head, `${grouped(this.shown.length)}${part} stored ${this.shown.length === 1 && !part ? "tensor" : "tensors"}, ${inBytes(bytes)} (${share(bytes, this.total)})`);
    this.list.fill(this.shown.length);
  }

  private sortBy(order: Order): void {
    this.reversed = order === this.order && !this.reversed;
    this.order = order;
    this.refill();
    this.orders.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus(); // the pressed button was made anew
  }

  private row({ value, bytes, readers, type }: Stored): Row {
    const { graph } = this.app.sides[this.model];
    const first = readers.length ? `${graph.op(readers[0]).type} ${graph.nodeName(readers[0])}` : "not read";
    const more = readers.length > 1 ? ` and ${grouped(readers.length - 1)} more` : "";
    return {
      class: "two",
      parts: [
        el("span", {}, el("b", {}, inBytes(bytes)), el("span", { class: "dim" }, share(bytes, this.total)), el("span", {}, graph.valueName(value))),
        el("small", { class: "dim" }, `${type || "type unknown"} → ${first}${more}`),
      ],
    };
  }

  /** Enter goes to the first row, Escape clears: the keys belong to the picture afterwards. ↓ goes into the list. */
  private key(event: KeyboardEvent): void {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      return this.list.focus();
    }
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter" && !this.shown.length) return;
    if (event.key === "Enter") this.go(0);
    else if (this.filter.value) {
      this.filter.value = "";
      this.refill();
    }
    this.app.pane.canvas.focus();
  }

  focusFilter(): void {
    this.filter.focus();
    this.filter.select();
  }

  /** Goes to the first reader of a tensor; the row that is chosen already leads to the next one. */
  private go(index: number): void {
    const { value, readers } = this.shown[index];
    this.reader = index === this.at && readers.length ? (this.reader + 1) % readers.length : 0;
    this.at = index;
    this.list.setCurrent(index);
    const node = readers[this.reader];
    const name = this.app.sides[this.model].graph.valueName(value);
    this.app.jump(this.model, node === undefined ? { kind: "value", ref: value } : { kind: "node", ref: node });
    const which = readers.length > 1 ? `reader ${this.reader + 1} of ${grouped(readers.length)}` : "its reader";
    this.app.page.toast(`${name}: ${readers.length ? which : "no node reads it"}`);
  }

  /** The rows as a table, for paper. */
  table(): Table {
    this.show();
    const { graph } = this.app.sides[this.model];
    return {
      title: "Stored tensors",
      head: ["Tensor", "Type", "Size", "Share", "Read by"],
      rows: this.shown.map(({ value, bytes, readers, type }) => [
        graph.valueName(value),
        type,
        inBytes(bytes),
        share(bytes, this.total),
        readers.map((node) => graph.nodeName(node)).join(", "),
      ]),
    };
  }
}
