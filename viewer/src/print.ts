/** On paper the visible picture and the inspector are black on white, whatever the theme. */

import type { App } from "./app";
import { LIGHT } from "./colours";

export function listenToPrinting(app: App): void {
  const draw = (paper: boolean): void =>
    app.panes.forEach((pane, model) =>
      pane.forPaper(paper ? app.look(model, LIGHT) : null, { look: app.sides[model].paint, palette: app.palette }),
    );
  window.matchMedia("print").addEventListener("change", (event) => draw(event.matches));
  window.addEventListener("beforeprint", () => draw(true));
  window.addEventListener("afterprint", () => draw(false));
}
