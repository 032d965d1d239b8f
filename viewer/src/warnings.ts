/** The lines above the picture: what a reader must not overlook, such as a report of another model. */

import { el } from "./dom";

export function warningLines(texts: string[]): HTMLElement | null {
  if (!texts.length) return null;
  return el("div", { class: "warnings", role: "alert" }, ...texts.map((text) => el("p", {}, text)));
}
