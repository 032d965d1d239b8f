/** The elements around the picture: header, panels, legend, and what they show. */

import type { App } from "./app";
import { Changes } from "./changes";
import { colourChoice } from "./colour_choice";
import { button, el, replace } from "./dom";
import { Figures } from "./figures";
import { helpDialog } from "./help";
import { hoverText } from "./hover_text";
import { icon } from "./icons";
import { Inspector } from "./inspector";
import { legendOf } from "./legend";
import { listenToKeys } from "./keyboard";
import { Notices } from "./notices";
import { Outline } from "./outline";
import type { Hit } from "./picture";
import type { Table } from "./print";
import { ProgramPanel } from "./program";
import { Results } from "./results";
import { saveSvg } from "./saving";
import { SearchField } from "./search_field";
import type { Side } from "./side";
import { Tabs } from "./tabs";
import { Tensors } from "./tensors";
import { warningLines } from "./warnings";
import { SIDE_WORDS } from "./words";

export type Tab = "outline" | "results" | "figures" | "changes" | "tensors" | "program";

/** Whether the panels lie over the picture, as in the style. */
function isNarrow(): boolean {
  return window.matchMedia("(max-width: 760px)").matches;
}

export class Page {
  readonly inspector: Inspector;
  private readonly outline: Outline;
  private readonly results: Results;
  private readonly figures: Figures;
  private readonly changes: Changes;
  private readonly tensors: Tensors;
  private readonly program: ProgramPanel;
  readonly notices = new Notices((change) => this.app.goTo(change));
  private readonly tabs: Tabs<Tab>;
  private readonly left = el("aside", { class: "left", "aria-label": "Lists" });
  private readonly right = el("aside", { class: "right", "aria-label": "Inspector" });
  private readonly crumbs = el("nav", { class: "crumbs", "aria-label": "Levels" });
  private readonly legend = el("div", { class: "legend", role: "note", "aria-label": "Legend" });
  private readonly live = el("div", { class: "offscreen", role: "status", "aria-live": "polite" });
  private readonly message = el("div", { class: "toast", hidden: true });
  /** The content to print; empty while nothing is printed. */
  readonly paper = el("div", { class: "paper" });
  private readonly stage = el("div", { class: "panes" });
  private readonly zoom = button("100 %", () => this.app.pane.zoomBy(1 / this.app.side.camera.zoom), {
    title: "Zoom to 100 %",
    key: "0",
    class: "zoom",
  });
  private readonly search: SearchField;
  private readonly colours: HTMLSelectElement;
  private readonly dialog = helpDialog();
  private toastTimer = 0;

  constructor(
    private readonly app: App,
    root: HTMLElement,
  ) {
    this.inspector = new Inspector(app);
    this.outline = new Outline(app);
    this.results = new Results(app, () => this.search.showCount());
    this.figures = new Figures(app);
    this.changes = new Changes(app);
    this.tensors = new Tensors(app);
    this.program = new ProgramPanel(app);
    this.tabs = new Tabs<Tab>([
      { key: "outline", title: "Outline", element: this.outline.element, shown: () => this.outline.show() },
      { key: "results", title: "Found", element: this.results.element },
      ...(app.overlays.length ? [{ key: "figures" as const, title: "Figures", element: this.figures.element }] : []),
      ...(app.differences
        ? [
            {
              key: "changes" as const,
              title: "Changes",
              element: this.changes.element,
              shown: () => this.changes.show(),
            },
          ]
        : []),
      { key: "tensors", title: "Tensors", element: this.tensors.element, shown: () => this.tensors.show() },
      ...(app.scene.program
        ? [
            {
              key: "program" as const,
              title: "Program",
              element: this.program.element,
              shown: () => this.program.show(),
            },
          ]
        : []),
    ]);
    this.search = new SearchField(this.results, {
      open: () => this.open("results"),
      step: (by) => this.step("results", by),
      leave: () => app.pane.canvas.focus(),
      say: (text) => this.say(text),
    });
    this.colours = colourChoice(app, () => typeof app.colour === "number" && this.open("figures"));
    this.build(root);
    this.watchTheme();
    listenToKeys(app);
  }

  private build(root: HTMLElement): void {
    const { app } = this;
    this.left.append(this.tabs.bar, this.tabs.body);
    this.right.append(this.inspector.element);
    const tools = el(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "View" },
      button("−", () => app.pane.zoomBy(0.8), { title: "Zoom out", key: "−" }),
      this.zoom,
      button("+", () => app.pane.zoomBy(1.25), { title: "Zoom in", key: "+" }),
      button("Fit", () => app.fit(), { title: "Fit the whole picture", key: "f" }),
      app.scene.models[0].rooms.length > 1
        ? button("Open all", () => app.openAll(), { title: "Open all levels", key: "e" })
        : null,
      app.scene.models[0].rooms.length > 1
        ? button("Close all", () => app.closeAll(), { title: "Close all levels", key: "E" })
        : null,
    );
    const help = el(
      "p",
      { id: "picture-help", class: "offscreen" },
      "Arrow keys move along the edges, Enter opens a level, question mark lists all keys. The outline holds the same items as a list.",
    );
    const main = el("main", {}, this.stage, el("footer", {}, tools, this.legend), this.message, help);
    replace(root, this.header(), this.paper, warningLines(app.scene, () => (this.inspector.show(), app.pane.canvas.focus())), this.notices.element, el("div", { class: "body" }, this.left, main, this.right), this.live, this.dialog);
    this.fitPanels();
    // A frame of a notebook may have no size yet when its page starts.
    if (!window.innerWidth) this.fitPanelsLater();
    document.title = `${app.scene.models.map((model) => model.name).join(" → ")} · onnxsmith view`;
  }

  /** Waits for the resize that gives the frame a width; the first may not. */
  private fitPanelsLater(): void {
    const fit = (): void => {
      if (!window.innerWidth) return;
      window.removeEventListener("resize", fit);
      this.fitPanels();
    };
    window.addEventListener("resize", fit);
  }

  /** Shows the panels that the window has space for. */
  private fitPanels(): void {
    this.left.hidden = window.innerWidth < 900;
    this.right.hidden = window.innerWidth < 700;
    if (!this.left.hidden && this.tabs.current === "outline" && this.app.page) this.outline.show();
  }

  private header(): HTMLElement {
    const { app } = this;
    return el(
      "header",
      {},
      el("h1", { class: "offscreen" }, app.scene.headline || app.scene.models[0].name),
      button(icon("menu"), () => this.togglePanel("left"), { title: "Lists", key: "l", class: "icon" }),
      this.crumbs,
      this.search.element,
      el("label", { class: "colour-by" }, el("span", { class: "dim" }, "Colour by"), this.colours),
      app.sides.length > 1
        ? button(icon("split"), () => app.setBoth(!app.both), { title: "Two pictures or one", key: "v", class: "icon" })
        : null,
      app.sides.length > 1
        ? button(icon("swap"), () => app.activate(1 - app.active), {
            title: "The other model",
            key: "x",
            class: "icon",
          })
        : null,
      button(icon("save"), () => saveSvg(app), { title: "Save what is visible as SVG", key: "s", class: "icon" }),
      button(icon("theme"), () => this.switchTheme(), { title: "Light or dark", key: "t", class: "icon" }),
      button("?", () => this.help(), { title: "Keys", key: "?", class: "icon" }),
      button(icon("panel"), () => this.togglePanel("right"), { title: "Inspector", key: "i", class: "icon" }),
    );
  }

  // What the app calls.

  layOut(): void {
    const { app } = this;
    if (app.both && this.stage.children.length === app.panes.length) {
      [...this.stage.children].forEach((box, at) => box.classList.toggle("active", at === app.active));
      return; // a new box would take the picture out of the old one
    }
    const shown = app.both ? app.panes : [app.pane];
    const boxes = shown.map((pane) => {
      const { model } = pane.side.graph;
      const title =
        app.sides.length > 1
          ? el("div", { class: "pane-title" }, el("b", {}, SIDE_WORDS[app.panes.indexOf(pane)]), model.name)
          : null;
      return el("div", { class: `pane-box${app.both && pane === app.pane ? " active" : ""}` }, title, pane.element);
    });
    replace(this.stage, ...boxes);
  }

  pictureChanged(): void {
    this.showCrumbs();
    if (this.tabs.current === "tensors" && !this.left.hidden) this.tensors.show(); // of the other model, perhaps
    this.outline.changed(this.tabs.current === "outline" && !this.left.hidden);
    this.zoomed();
  }

  selectionChanged(): void {
    this.inspector.show();
    this.outline.selected(this.tabs.current === "outline" && !this.left.hidden);
    const last = this.app.side.selection.at(-1);
    if (last?.kind !== "node") return;
    if (this.app.differences) this.changes.follow(this.app.active, last.ref);
    if (this.app.active === 0 && this.app.scene.program) this.program.follow(last.ref);
  }

  colourChanged(): void {
    const { app } = this;
    this.colours.value = String(app.colour);
    const figures = typeof app.colour === "number" ? app.overlays[app.colour] : null;
    this.figures.fill(figures, app.palette.dark);
    const parts = legendOf(app, app.palette);
    replace(this.legend, ...parts);
    this.legend.hidden = parts.length === 0;
    this.outline.changed(this.tabs.current === "outline" && !this.left.hidden);
  }

  zoomed(): void {
    const percent = this.app.side.camera.zoom * 100;
    const text = `${percent >= 10 ? Math.round(percent) : Number(percent.toPrecision(1))} %`;
    this.zoom.textContent = text;
    this.zoom.setAttribute("aria-label", `${text}: zoom to 100 %`);
  }

  hover(side: Side, hit: Hit | null): void {
    const chosen = hit && side.chosenAt(hit);
    const text = chosen ? hoverText(this.app, side, chosen) : "";
    const { canvas } = this.app.panes[side.graph.index];
    if (canvas.title !== text) canvas.title = text;
  }

  private showCrumbs(): void {
    const { side } = this.app;
    const { rooms, name } = side.graph.model;
    const path = side.graph.path(side.room);
    const crumb = (room: number, text: string): HTMLElement =>
      room === side.room
        ? el("span", { "aria-current": "location" }, text)
        : button(text, () => this.app.enter(side.graph.index, room), { class: "link" });
    const parts = path.flatMap((room, at) => [
      at ? el("span", { class: "dim", "aria-hidden": "true" }, "›") : null,
      crumb(room, at ? rooms[room].title : name),
    ]);
    replace(this.crumbs, ...parts);
  }

  // Panels.

  open(tab: Tab, focus = false): void {
    if (!this.tabs.has(tab)) return this.toast(`This page has no ${tab}`);
    this.left.hidden = false;
    this.tabs.open(tab);
    if (focus && tab === "tensors") this.tensors.focusFilter();
    else if (focus) this.tabs.focusInside();
  }

  togglePanel(side: "left" | "right"): void {
    const panel = side === "left" ? this.left : this.right;
    panel.hidden = !panel.hidden;
    if (side === "left" && !panel.hidden) this.tabs.open(this.tabs.current);
  }

  /** The camera went elsewhere: in a narrow window the list that led there no longer covers it. */
  jumped(): void {
    this.zoomed();
    if (isNarrow()) this.left.hidden = true;
  }

  focusSearch(): void {
    this.search.focus();
  }

  /** Forgets the search. Returns whether there was one. */
  clearSearch(): boolean {
    return this.search.clear();
  }

  searchFor(text: string): void {
    this.search.searchFor(text);
  }

  step(tab: "results" | "figures" | "changes", by: number): void {
    if (tab === "changes" && !this.app.differences) return this.toast("There is no second model to compare with");
    if (tab === "figures" && typeof this.app.colour !== "number") {
      if (!this.app.overlays.length) return this.toast("There are no figures");
      this.app.setColour(0);
    }
    // In a narrow window the list would cover the picture: there it stays closed if it was.
    if (isNarrow()) this.tabs.open(tab);
    else this.open(tab);
    this[tab].step(by);
  }

  /** The list that stands beside the picture, for paper; null if none is shown. */
  list(): Table | null {
    if (this.left.hidden) return null;
    const lists = {
      outline: this.outline,
      results: this.results,
      figures: this.figures,
      changes: this.changes,
      tensors: this.tensors,
      program: this.program,
    };
    return lists[this.tabs.current].table();
  }

  help(): void {
    this.dialog.showModal();
  }

  say(text: string): void {
    this.live.textContent = text;
  }

  toast(text: string): void {
    this.message.textContent = text;
    this.message.hidden = false;
    window.clearTimeout(this.toastTimer);
    this.toastTimer = window.setTimeout(() => (this.message.hidden = true), 2500);
    this.say(text);
  }

  // Theme.

  private watchTheme(): void {
    const root = document.documentElement;
    root.dataset.theme = this.app.palette.dark ? "dark" : "light";
    window
      .matchMedia("(prefers-color-scheme: dark)")
      .addEventListener("change", (event) => this.setTheme(event.matches));
  }

  switchTheme(): void {
    this.setTheme(!this.app.palette.dark);
  }

  private setTheme(dark: boolean): void {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.app.setPalette(dark);
  }
}
