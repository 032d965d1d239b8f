/** The lines above the picture: what a reader must not overlook, such as a report of another model. */

import { button, el } from "./dom";

/** `closed` is called when the lines give their space to the picture; on paper they stay, and so they do in the inspector. */
export function warningLines(texts: string[], closed: () => void): HTMLElement | null {
  if (!texts.length) return null;
  const lines = el("div", { class: "warnings", role: "alert" }, ...texts.map((text) => el("p", {}, text)));
  const close = (): void => {
    made.classList.add("closed");
    closed();
  };
  const sign = button("×", close, { title: "Close these lines: the notes in the inspector have them", class: "icon" });
  const made = el("div", { class: "notice" }, lines, sign);
  return made;
}
