/** Gives a text to the clipboard, or to a file of the user. */

import type { App } from "./app";
import { el } from "./dom";

/** Copies a text; resolves to whether that worked. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** For browsers that give pages from disk no clipboard. */
function copyBySelection(text: string): boolean {
  const field = el("textarea", { class: "offscreen", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

export function save(text: string, name: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A file name without letters that file systems refuse. */
export function fileName(text: string, ending: string): string {
  return `${
    text
      .replace(/\.onnx(txt)?$/, "")
      .replace(/[^\p{L}\p{N}._-]+/gu, "_")
      .slice(0, 80) || "model"
  }.${ending}`;
}

/** Copies a command, and says whether that worked. */
export async function copyCommand(app: App, command: string): Promise<void> {
  const refused = "The browser did not allow copying: select the text and copy it yourself";
  app.page.toast((await copy(command)) ? "Copied" : refused);
}

/** Saves what is visible of the model that is looked at. */
export function saveSvg(app: App): void {
  const { model } = app.side.graph;
  const title = `${model.name}: ${model.rooms[app.side.room].title}`;
  save(app.pane.svg(title), fileName(model.name, "svg"), "image/svg+xml");
  app.page.toast("Saved what is visible as SVG");
}
