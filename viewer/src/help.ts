/** The overlay that lists the keys and the forms of search queries. */

import { button, el } from "./dom";
import { KEYS } from "./keyboard";
import { FORMS } from "./query";

export function helpDialog(): HTMLDialogElement {
  const group = (title: string, rows: [string, string][]): HTMLElement =>
    el(
      "section",
      {},
      el("h3", {}, title),
      el("dl", { class: "keys" }, ...rows.flatMap(([written, words]) => [el("dt", {}, written), el("dd", {}, words)])),
    );
  const groups = [
    ...KEYS.map(([title, keys]) => group(title, keys.map(({ keys: written, words }) => [written, words]))),
    group("Search", FORMS),
  ];
  const pointer = el(
    "p",
    { class: "dim" },
    "With the mouse: drag to pan, turn the wheel to zoom, click to select, Shift and click to select several, double-click a level to open or close it. ⤢ shows a level alone.",
  );
  const dialog: HTMLDialogElement = el(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    // Focused first: the button at the end would scroll a small window down.
    el("h2", { id: "help-title", tabindex: -1, autofocus: true }, "Keys"),
    el("div", { class: "columns" }, ...groups),
    pointer,
    button("Close", () => dialog.close(), { class: "primary" }),
  );
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "?") return;
    event.preventDefault(); // or the page's own key opens it again
    dialog.close();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
