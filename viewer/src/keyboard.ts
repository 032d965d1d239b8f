/** The keys of the page. The help overlay is made from the same list. */

import type { App } from "./app";
import { followEdge, walk } from "./edges";
import { enterSelected, leave, toggleSelected } from "./levels";
import { saveSvg } from "./saving";
import type { Direction } from "./walk";

interface Key {
  /** As it is written in the help. */
  keys: string;
  words: string;
  /** Values of KeyboardEvent.key that it answers to. */
  on: string[];
  act(app: App, event: KeyboardEvent): void;
}

const PAN = 80;
const ZOOM = 1.25;
const ARROWS: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const STEPS: Record<Direction, [number, number]> = { up: [0, PAN], down: [0, -PAN], left: [PAN, 0], right: [-PAN, 0] };

export const KEYS: [string, Key[]][] = [
  [
    "Move",
    [
      {
        keys: "← ↑ ↓ →",
        words: "go to the neighbour of the selection; without one, pan",
        on: Object.keys(ARROWS),
        act: arrow,
      },
      { keys: "Shift + arrow", words: "pan", on: [], act: () => undefined },
      {
        keys: "+  −",
        words: "zoom in, zoom out",
        on: ["+", "=", "-", "_"],
        act: (app, event) => app.pane.zoomBy("+=".includes(event.key) ? ZOOM : 1 / ZOOM),
      },
      { keys: "0", words: "zoom to 100 %", on: ["0"], act: (app) => app.pane.zoomBy(1 / app.side.camera.zoom) },
      { keys: "f", words: "fit the whole picture", on: ["f"], act: (app) => app.fit() },
      { keys: "c", words: "centre the selection", on: ["c"], act: (app) => app.centre() },
    ],
  ],
  [
    "Levels",
    [
      {
        keys: "Enter",
        words: "open the selected level in its place, or close it",
        on: ["Enter"],
        act: (app, event) => (event.shiftKey ? enterSelected(app) : toggleSelected(app)),
      },
      {
        keys: "Shift + Enter",
        words: "show the selected level, or the body of a node, alone",
        on: [],
        act: () => undefined,
      },
      { keys: "Backspace", words: "go out to the level around", on: ["Backspace"], act: (app) => leave(app) },
      {
        keys: "e  Shift + E",
        words: "open all levels, close all",
        on: ["e", "E"],
        act: (app, event) => (event.key === "E" ? app.closeAll() : app.openAll()),
      },
    ],
  ],
  [
    "Find",
    [
      { keys: "/", words: "search", on: ["/"], act: (app) => app.page.focusSearch() },
      {
        keys: "n  Shift + N",
        words: "next result, the one before",
        on: ["n", "N"],
        act: (app, event) => app.step("results", event.key === "N" ? -1 : 1),
      },
      {
        keys: "w  Shift + W",
        words: "next worst figure, the one before",
        on: ["w", "W"],
        act: (app, event) => app.step("figures", event.key === "W" ? -1 : 1),
      },
      {
        keys: "d  Shift + D",
        words: "next difference, the one before",
        on: ["d", "D"],
        act: (app, event) => app.step("changes", event.key === "D" ? -1 : 1),
      },
      {
        keys: "r  Shift + R",
        words: "go to a reader of the selection, to its producer",
        on: ["r", "R"],
        act: (app, event) => followEdge(app, event.key === "R" ? "up" : "down"),
      },
    ],
  ],
  [
    "Page",
    [
      { keys: "o", words: "outline: the items as a list", on: ["o"], act: (app) => app.page.open("outline", true) },
      {
        keys: "b",
        words: "stored tensors by size: type to filter, Enter goes to the reader",
        on: ["b"],
        act: (app) => app.page.open("tensors", true),
      },
      { keys: "p", words: "program", on: ["p"], act: (app) => app.page.open("program", true) },
      { keys: "l", words: "show or hide the panel on the left", on: ["l"], act: (app) => app.page.togglePanel("left") },
      { keys: "i", words: "show or hide the inspector", on: ["i"], act: (app) => app.page.togglePanel("right") },
      { keys: "g", words: "back to the picture", on: ["g"], act: (app) => app.pane.canvas.focus() },
      { keys: "v", words: "two pictures side by side, or one", on: ["v"], act: (app) => app.setBoth(!app.both) },
      { keys: "x", words: "the other model", on: ["x"], act: (app) => app.activate(1 - app.active) },
      { keys: "s", words: "save what is visible as SVG", on: ["s"], act: (app) => saveSvg(app) },
      { keys: "t", words: "light or dark", on: ["t"], act: (app) => app.page.switchTheme() },
      { keys: "Esc", words: "clear the selection, then the search", on: ["Escape"], act: (app) => app.clear() },
      { keys: "?", words: "this help", on: ["?"], act: (app) => app.page.help() },
    ],
  ],
];

const BY_KEY = new Map(
  KEYS.flatMap(([, keys]) => keys.flatMap((key) => key.on.map((name): [string, Key] => [name, key]))),
);

function arrow(app: App, event: KeyboardEvent): void {
  const direction = ARROWS[event.key];
  if (event.shiftKey || !app.side.selection.length) app.pane.panBy(...STEPS[direction]);
  else walk(app, direction);
}

export function listenToKeys(app: App): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target as HTMLElement;
    // A closed dialog keeps the focus until the next picture is drawn.
    if (target.closest("dialog[open]")) return;
    const isField = target.matches("input, select, textarea");
    if (isField) {
      // A choice that stands, and Escape, give the keys back to the picture.
      const leaves = event.key === "Escape" || (event.key === "Enter" && target.matches("select"));
      if (leaves) {
        event.preventDefault();
        app.pane.canvas.focus();
      }
      return;
    }
    // Buttons and links keep the keys that press them.
    if (target.matches("button, a, summary, [role=tab]") && ["Enter", " "].includes(event.key)) return;
    const key = BY_KEY.get(event.key);
    if (!key) return;
    event.preventDefault();
    key.act(app, event);
  });
}
