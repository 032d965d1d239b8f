/** Gives a text to the clipboard, or to a file of the user. */

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
  return `${text.replace(/\.onnx(txt)?$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "model"}.${ending}`;
}
