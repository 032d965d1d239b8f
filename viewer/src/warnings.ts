/** The lines above the picture that a reader must not overlook, such as a report about another model. */

import { button, el } from "./dom";
import type { Scene } from "./scene";

/** `closed` is called when the lines gave their space to the picture: then they are notes, and on paper they stay. */
export function warningLines(scene: Scene, closed: () => void): HTMLElement | null {
  const texts = scene.warnings ?? [];
  if (!texts.length) return null;
  const lines = el("div", { class: "warnings", role: "alert" }, ...texts.map((text) => el("p", {}, text)));
  const close = (): void => {
    made.classList.add("closed");
    scene.notes.unshift(...texts);
    closed();
  };
  const sign = button("×", close, { title: "Close these lines: the inspector has them as notes", class: "icon" });
  const made = el("div", { class: "notice" }, lines, sign);
  return made;
}
