/** Starts the page: reads the scene out of the document and shows it, or says why it can't be shown. */

import { App } from "./app";
import { el, replace } from "./dom";
import { read, Unreadable } from "./reading";

function start(): void {
  const root = document.getElementById("app") ?? document.body.appendChild(el("div", { id: "app" }));
  const holder = document.getElementById("scene");
  try {
    const app = new App(read(holder?.textContent ?? null), root);
    // The text is no longer needed; without it the page takes less memory.
    holder?.replaceChildren();
    app.start();
    // For measurements and tests.
    Object.assign(window, { onnxsmithView: app });
  } catch (error) {
    const known = error instanceof Unreadable;
    const text = known ? error.message : `The page met an error of its own: ${(error as Error).message}`;
    replace(
      root,
      el("main", { class: "refused", role: "alert" }, el("h1", {}, "This model cannot be shown"), el("p", {}, text)),
    );
    if (!known) throw error;
  }
}

start();
