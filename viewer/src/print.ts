/** On paper stands the whole level, with its title and legend, the list beside it as a table, and the inspector. */

import type { App } from "./app";
import { LIGHT } from "./colours";
import { el, replace } from "./dom";
import { legendOf } from "./legend";
import type { Pane } from "./pane";
import { grouped } from "./words";

/** A list as it stands on paper. */
export interface Table {
  title: string;
  head: string[];
  rows: string[][];
}

/** The most rows of a list that are printed; the rest is counted. A choice: some forty pages. */
const MOST_ROWS = 2000;

export function listenToPrinting(app: App): void {
  const { paper } = app.page;
  const fill = (): void => {
    if (!paper.children.length) replace(paper, ...sheets(app), table(app.page.list()));
  };
  const empty = (): void => replace(paper);
  window.matchMedia("print").addEventListener("change", (event) => (event.matches ? fill() : empty()));
  window.addEventListener("beforeprint", fill);
  window.addEventListener("afterprint", empty);
}

function sheets(app: App): HTMLElement[] {
  return (app.both ? app.panes : [app.pane]).map((pane) => sheet(app, pane));
}

function sheet(app: App, pane: Pane): HTMLElement {
  const { graph, room } = pane.side;
  const { rooms, name } = graph.model;
  const path = graph.path(room).map((one, at) => (at ? rooms[one].title : name));
  const { svg, wide } = pane.onPaper(app.look(graph.index, LIGHT), path.join(" › "));
  return el(
    "section",
    { class: `sheet ${wide ? "wide" : "upright"}` },
    el("h2", {}, path.join(" › ")),
    el("p", { class: "dim" }, app.scene.headline),
    svg,
    el("div", { class: "legend" }, ...legendOf(app, LIGHT)),
  );
}

function table(list: Table | null): HTMLElement | null {
  if (!list?.rows.length) return null;
  const cells = (tag: "th" | "td", row: string[]): HTMLElement => el("tr", {}, ...row.map((text) => el(tag, {}, text)));
  const more = list.rows.length - MOST_ROWS;
  return el(
    "section",
    { class: "listed" },
    el("h2", {}, list.title),
    el(
      "table",
      {},
      el("thead", {}, cells("th", list.head)),
      el("tbody", {}, ...list.rows.slice(0, MOST_ROWS).map((row) => cells("td", row))),
    ),
    more > 0 ? el("p", {}, `and ${grouped(more)} more`) : null,
  );
}
