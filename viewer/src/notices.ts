/** A line above the picture that stays until it is closed, on names in an address that the page does not have. */

import { button, el, replace } from "./dom";
import type { Lost } from "./lost";
import type { PlaceInUrl } from "./url";

export class Notices {
  readonly element = el("div", { class: "lost", role: "alert", hidden: true });

  /** `go` follows an offer: it changes a part of the address. */
  constructor(private readonly go: (change: Partial<PlaceInUrl>) => void) {}

  show(lost: Lost[]): void {
    const lines = lost.map(({ text, near }) =>
      el(
        "p",
        {},
        `${text}.`,
        near.length ? " Near: " : null,
        ...near.flatMap((one, at) => [at ? ", " : null, button(one.text, () => this.go(one.change), { class: "link" })]),
      ),
    );
    const head = el("p", {}, el("b", {}, "The address is of another model or version of it."));
    const close = button("×", () => this.show([]), { title: "Close this message", class: "icon" });
    replace(this.element, ...(lines.length ? [el("div", {}, head, ...lines), close] : []));
    this.element.hidden = !lines.length;
  }
}
