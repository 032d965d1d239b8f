/** Lets the user choose what colours stand for. */

import type { App } from "./app";
import { el } from "./dom";

/** `chosen` is called after a choice, when the app has the new colour. */
export function colourChoice(app: App, chosen: () => void): HTMLSelectElement {
  const choice = (value: string, text: string): HTMLOptionElement => el("option", { value }, text);
  const select = el(
    "select",
    { "aria-label": "Colour by" }, // the words beside it are hidden in a narrow window
    choice("family", "operator family"),
    app.differences ? choice("difference", "difference") : null,
    ...app.overlays.map(({ overlay }, at) =>
      choice(
        String(at),
        app.sides.length > 1 ? `${overlay.title} (${app.scene.models[overlay.model].name})` : overlay.title,
      ),
    ),
  );
  let byPointer = false;
  select.addEventListener("pointerdown", () => (byPointer = true));
  select.addEventListener("keydown", () => (byPointer = false));
  select.addEventListener("change", () => {
    const { value } = select;
    if (byPointer) app.pane.canvas.focus(); // the select would take keys such as w for the first letter of an entry
    app.setColour(value === "family" || value === "difference" ? value : Number(value));
    chosen();
  });
  return select;
}
