/** Holds the state of the page and its actions. Panels and keys call the app, and the app calls the panels. */

import { aim } from "./aim";
import { Differences } from "./differences";
import { clicked } from "./clicks";
import { follow } from "./following";
import { Graph } from "./graph";
import { Highlights } from "./highlights";
import { DARK, LIGHT, familyPaints, type Palette } from "./colours";
import { DifferenceLook, FamilyLook, OverlayLook, type Look } from "./looks";
import { OverlayFigures } from "./overlays";
import { Page, type Tab } from "./page";
import { Pane } from "./pane";
import type { Hit } from "./picture";
import { listenToPrinting } from "./print";
import type { Scene } from "./scene";
import { Side, type Chosen } from "./side";
import { canvasMeasure } from "./text";
import type { PlaceInUrl } from "./url";
import { UrlKeeper } from "./url_keeper";
import { plural } from "./words";

/** "family", "difference", or the index of an overlay. */
export type Colour = "family" | "difference" | number;

export class App {
  readonly sides: Side[];
  readonly panes: Pane[];
  readonly overlays: OverlayFigures[];
  readonly differences: Differences | null;
  readonly page: Page;
  readonly highlights: Highlights;
  private readonly url: UrlKeeper;
  active = 0;
  both: boolean;
  colour: Colour;
  palette: Palette = LIGHT;

  constructor(
    readonly scene: Scene,
    root: HTMLElement,
  ) {
    const graphs = scene.models.map((model, index) => new Graph(model, index));
    this.sides = graphs.map((graph) => new Side(graph));
    this.overlays = scene.overlays.map((overlay) => new OverlayFigures(overlay, graphs[overlay.model]));
    this.differences =
      scene.difference && graphs.length > 1 ? new Differences(scene.difference, [graphs[0], graphs[1]]) : null;
    this.colour = this.overlays.length ? 0 : this.differences ? "difference" : "family";
    this.both = graphs.length > 1;
    this.highlights = new Highlights(this);
    this.palette = darkWanted() ? DARK : LIGHT;
    this.sides.forEach((side) => (side.paint = this.look(side.graph.index)));
    this.panes = this.makePanes();
    this.page = new Page(this, root);
    this.url = new UrlKeeper(this);
    listenToPrinting(this);
  }

  private makePanes(): Pane[] {
    const measure = canvasMeasure();
    return this.sides.map((side, model) => {
      const events = {
        click: (hit: Hit | null, how: { shift: boolean; double: boolean }) => clicked(this, model, hit, how),
        hover: (hit: Hit | null) => this.page.hover(side, hit),
        moved: () => this.moved(model),
        focus: () => this.activate(model, false),
      };
      return new Pane(side, measure, side.paint, this.palette, events, `Graph of ${side.graph.model.name}`);
    });
  }

  /** Shows the page: at the place of the address, or from the top. */
  start(): void {
    this.page.layOut();
    this.panes.forEach((pane) => pane.resize());
    if (!this.url.restore()) this.first();
    this.refresh();
  }

  /** Goes to another place by a change of the address. */
  goTo(change: Partial<PlaceInUrl>): void {
    this.url.go(change);
  }

  private first(): void {
    this.sides.forEach((side) => side.home());
    this.follow(this.active);
  }

  get side(): Side {
    return this.sides[this.active];
  }

  get pane(): Pane {
    return this.panes[this.active];
  }

  // Looks.

  look(model: number, palette = this.palette): Look {
    const { graph } = this.sides[model];
    if (this.colour === "difference" && this.differences) return new DifferenceLook(this.differences, model, palette);
    const figures = typeof this.colour === "number" ? this.overlays[this.colour] : undefined;
    return figures && figures.overlay.model === model
      ? new OverlayLook(figures, palette)
      : new FamilyLook(graph, palette);
  }

  setColour(colour: Colour): void {
    this.colour = colour;
    this.repaint();
    this.page.colourChanged();
    this.url.changed();
  }

  setPalette(dark: boolean): void {
    this.palette = dark ? DARK : LIGHT;
    this.repaint();
    this.page.colourChanged();
    this.page.inspector.show();
  }

  private repaint(): void {
    this.panes.forEach((pane, model) => pane.paint((this.sides[model].paint = this.look(model)), this.palette));
  }

  familyColour(family: string): string {
    const paints = familyPaints(this.palette);
    return (paints[family] ?? paints.other).strong;
  }

  figuresOf(model: number): OverlayFigures[] {
    return this.overlays.filter((figures) => figures.overlay.model === model);
  }

  // Rooms.

  toggle(model: number, room: number): void {
    const side = this.sides[model];
    side.toggle(room);
    this.openPartners(model);
    this.pictureChanged(model);
    this.say(`${side.graph.model.rooms[room].title} ${side.opened.has(room) ? "opened" : "closed"}`);
  }

  enter(model: number, room: number): void {
    const left = this.sides[model].room;
    this.sides[model].enter(room);
    this.sides[model].home();
    this.openPartners(model);
    this.active = model;
    this.sides[model].selection = [{ kind: "room", ref: left === room ? room : left }].filter(({ ref }) =>
      this.sides[model].picture.spotOfRoom(ref, false),
    ) as Chosen[];
    this.pictureChanged(model);
    this.selectionChanged();
    this.url.changed(true);
    this.say(`${this.side.graph.model.rooms[room].title}: ${plural(this.side.graph.model.rooms[room].count, "node")}`);
  }

  openAll(): void {
    const all = this.sides.map((side) => side.openAll());
    this.sides.forEach((side) => side.home());
    this.pictureChanged(this.active);
    const words = all.every(Boolean) ? "All levels are open" : "Levels are open up to 5,000 items; open others one by one";
    if (!this.side.graph.hasBodies) return all.every(Boolean) ? this.say(words) : this.page.toast(words);
    this.page.toast(`${words}. Branches, bodies and functions are shown alone: ⤢ on their node`);
  }

  closeAll(): void {
    this.sides.forEach((side) => side.closeAll());
    this.fit();
    this.pictureChanged(this.active);
    this.say("All levels are closed");
  }

  /** Shows in the other model the room that is shown here, with the partners of all rooms that are open. */
  openPartners(model: number): void {
    const [side, other] = [this.sides[model], this.sides[1 - model]];
    const { differences } = this;
    if (!other || !differences) return;
    const theirs = (room: number): number => differences.partnerRoom(model, room);
    other.room = Math.max(0, theirs(side.room));
    other.opened = new Set([...side.opened].map(theirs).filter((room) => room >= 0));
    other.recompose();
  }

  // Selection.

  choose(model: number, chosen: Chosen | null, how: { add?: boolean; show?: boolean } = {}): void {
    this.active = model;
    const { side } = this;
    const same = (one: Chosen): boolean => one.kind === chosen?.kind && one.ref === chosen.ref;
    if (!chosen) side.selection = [];
    else if (!how.add) side.selection = [chosen];
    else
      side.selection = side.selection.some(same)
        ? side.selection.filter((one) => !same(one))
        : [...side.selection, chosen];
    if (how.show && chosen) this.show(side, chosen);
    this.selectionChanged();
  }

  /** Clears the selection; without one, the search. */
  clear(): void {
    if (this.side.selection.length) this.choose(this.active, null);
    else if (this.page.clearSearch()) this.say("The search is cleared");
  }

  /** Selects something anywhere in the model and moves there. Opens or enters rooms as needed. */
  jump(model: number, chosen: Chosen): void {
    this.jumpToAll(model, [chosen]);
  }

  /** Selects several things that are one place. `theirs` are the same place in the other model: rooms are opened there, too. */
  jumpToAll(model: number, all: Chosen[], theirs: Chosen[] = []): void {
    const side = this.sides[model];
    const other = this.sides[1 - model];
    this.activate(model, false);
    let changed = side.uncoverAll(all);
    if (changed) this.openPartners(model);
    if (other && theirs.length) changed = other.uncoverAll(theirs) || changed;
    side.selection = all;
    aim(side, all, this.differences ? other : undefined, theirs);
    if (changed) this.pictureChanged(model);
    this.selectionChanged();
    this.panes[model].movedFromOutside();
    this.follow(model);
    this.page.jumped();
  }

  show(side: Side, chosen: Chosen): void {
    const spot = side.spot(chosen);
    if (spot) side.camera.show(side.picture.box(spot));
    this.moved(side.graph.index);
    this.panes[side.graph.index].redraw();
  }

  centre(): void {
    const last = this.side.selection.at(-1);
    if (last) this.jump(this.active, last);
    else this.refuse("Nothing is selected");
  }

  fit(): void {
    this.sides.forEach((side) => side.camera.fit(side.box()));
    this.panes.forEach((pane) => pane.redraw());
    this.moved(this.active);
  }

  selectedNodes(side: Side): number[] {
    return [
      ...new Set(
        side.selection.flatMap((one) =>
          one.kind === "node" ? [one.ref] : one.kind === "room" ? side.graph.nodesWithin(one.ref) : [],
        ),
      ),
    ];
  }

  nameOf(side: Side, { kind, ref }: Chosen): string {
    if (kind === "node") return `${side.graph.op(ref).type} ${side.graph.nodeName(ref)}`;
    return kind === "room" ? side.graph.model.rooms[ref].title : side.graph.valueName(ref);
  }

  // What changed is told to the panels.

  selectionChanged(): void {
    this.highlights.pairSelections();
    this.sides.forEach((side) => side.remark());
    this.panes.forEach((pane) => pane.redraw());
    this.page.selectionChanged();
    this.url.changed();
    const last = this.side.selection.at(-1);
    if (last) this.say(this.nameOf(this.side, last));
  }

  pictureChanged(model: number): void {
    this.panes.forEach((pane) => pane.changed());
    this.follow(model);
    this.page.pictureChanged();
    this.url.changed();
  }

  refresh(): void {
    this.repaint();
    this.page.colourChanged();
    this.page.pictureChanged();
    this.page.selectionChanged();
  }

  private moved(model: number): void {
    this.follow(model);
    this.page.zoomed();
    this.url.changed();
  }

  follow(model: number): void {
    if (this.sides.length < 2 || !this.differences) return;
    follow(this.sides[model], this.sides[1 - model], this.differences);
    this.panes[1 - model].movedFromOutside();
  }

  activate(model: number, focus = true): void {
    if (!this.sides[model]) return this.refuse("There is no second model");
    if (model === this.active && !focus) return;
    this.active = model;
    this.page.layOut();
    this.page.pictureChanged();
    this.page.selectionChanged();
    if (focus) this.pane.canvas.focus();
  }

  setBoth(both: boolean): void {
    if (this.sides.length < 2) return this.refuse("There is no second model");
    this.both = both;
    this.page.layOut();
    this.pane.canvas.focus(); // a picture that was moved has lost it
    this.panes.forEach((pane) => pane.resize());
    this.follow(this.active);
    this.url.changed();
  }

  // Search and lists.

  searchFor(text: string): void {
    this.page.searchFor(text);
  }

  /** Marks the search results in each model. */
  highlight(found: Chosen[][]): void {
    this.highlights.found(found);
  }

  point(nodes: ReadonlySet<number>): void {
    this.highlights.point(nodes);
  }

  step(tab: Exclude<Tab, "outline" | "tensors" | "program">, by: number): void {
    this.page.step(tab, by);
  }

  /** Shows a visible text on why a key does nothing here. */
  refuse(text: string): void {
    this.page.toast(text);
  }

  say(text: string): void {
    this.page?.say(text);
  }
}

function darkWanted(): boolean {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}
