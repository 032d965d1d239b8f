/** Commands that the inspector offers for a selection. */

import type { App } from "./app";
import { offers, type Offer } from "./commands";
import { button, el } from "./dom";
import { section, type Part } from "./inspector_parts";
import { copyCommand } from "./saving";
import type { Side } from "./side";

/** Offers commands for nodes, to be copied. */
export function commands(app: App, side: Side, nodes: number[]): Part {
    return section(
      "Go on",
      offers(side.graph, nodes, app.sides[1 - side.graph.index]?.graph).map((offer) => offerPart(app, offer)),
    );
  }

/** A command with its title, a button that copies it, and a remark to read before running it. */
export function offerPart(app: App, { title, command, note }: Offer): HTMLElement {
    return el(
      "div",
      { class: "offer" },
      el(
        "div",
        { class: "offer-head" },
        el("span", {}, title),
        command ? button("Copy", () => copyCommand(app, command), { title: `Copy the command: ${title}` }) : null,
      ),
      command ? el("code", {}, command) : null,
      note ? el("small", { class: "dim" }, note) : null,
    );
  }
