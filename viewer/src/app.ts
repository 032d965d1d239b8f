/** The state of the page and all that can be done to it. Panels and keys call this; this calls the panels. */

import { Differences } from "./differences";
import { follow } from "./following";
import { Graph } from "./graph";
import { Highlights } from "./highlights";
import { DARK, LIGHT, familyPaints, type Palette } from "./colours";
import { DifferenceLook, FamilyLook, OverlayLook, type Look } from "./looks";
import { OverlayFigures } from "./overlays";
import { Page, type Tab } from "./page";
import { Pane } from "./pane";
import type { Box, Hit } from "./picture";
import { listenToPrinting } from "./print";
import { copy, fileName, save } from "./saving";
import type { Scene } from "./scene";
import { Side, type Chosen } from "./side";
import { canvasMeasure } from "./text";
import { UrlKeeper } from "./url_keeper";
import { plural } from "./words";
import { firstOf, neighbour, type Direction } from "./walk";

/** "family", "difference", or the index of an overlay. */
export type Colour = "family" | "difference" | number;

/** A jump zooms in to this, where words are legible. */
const LEGIBLE = 0.75;

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
    this.differences = scene.difference && graphs.length > 1 ? new Differences(scene.difference, [graphs[0], graphs[1]]) : null;
    this.colour = this.differences ? "difference" : this.overlays.length ? 0 : "family";
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
        click: (hit: Hit | null, how: { shift: boolean; double: boolean }) => this.clicked(model, hit, how),
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
    return figures && figures.overlay.model === model ? new OverlayLook(figures, palette) : new FamilyLook(graph, palette);
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
    this.sides[model].selection = [{ kind: "room", ref: left === room ? room : left }].filter(({ ref }) => this.sides[model].picture.spotOfRoom(ref, false)) as Chosen[];
    this.pictureChanged(model);
    this.selectionChanged();
    this.url.changed(true);
    this.say(`${this.side.graph.model.rooms[room].title}: ${plural(this.side.graph.model.rooms[room].count, "node")}`);
  }

  leave(): void {
    const { graph, room } = this.side;
    if (room === 0) return this.say("This is the main graph");
    const host = graph.hostOf[room];
    this.enter(this.active, graph.itemOfRoom[room] < 0 && host >= 0 ? graph.model.nodes.room[host] : Math.max(0, graph.model.rooms[room].parent));
  }

  openAll(): void {
    const all = this.sides.map((side) => side.openAll());
    this.sides.forEach((side) => side.home());
    this.pictureChanged(this.active);
    this.say(all.every(Boolean) ? "All rooms are open" : "Rooms are open up to 5,000 items; open others one by one");
  }

  closeAll(): void {
    this.sides.forEach((side) => side.closeAll());
    this.fit();
    this.pictureChanged(this.active);
    this.say("All rooms are closed");
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

  toggleSelected(): void {
    const last = this.side.selection.at(-1);
    if (last?.kind === "room" && last.ref !== this.side.room && this.side.graph.itemOfRoom[last.ref] >= 0) this.toggle(this.active, last.ref);
    else if (last?.kind === "node") this.enterSelected();
    else if (last?.kind === "value") this.followEdge("up");
  }

  enterSelected(): void {
    const last = this.side.selection.at(-1);
    if (last?.kind === "room") this.enter(this.active, last.ref);
    const bodies = last?.kind === "node" ? this.side.graph.model.nodes.bodies[last.ref] : [];
    if (bodies.length) this.enter(this.active, bodies[0][1]);
  }

  // Selection.

  choose(model: number, chosen: Chosen | null, how: { add?: boolean; show?: boolean } = {}): void {
    this.active = model;
    const { side } = this;
    const same = (one: Chosen): boolean => one.kind === chosen?.kind && one.ref === chosen.ref;
    if (!chosen) side.selection = [];
    else if (!how.add) side.selection = [chosen];
    else side.selection = side.selection.some(same) ? side.selection.filter((one) => !same(one)) : [...side.selection, chosen];
    if (how.show && chosen) this.show(side, chosen);
    this.selectionChanged();
  }

  clear(): void {
    this.choose(this.active, null);
  }

  /** Selects what lies anywhere in the model and moves there; opens or enters rooms as needed. */
  jump(model: number, chosen: Chosen): void {
    this.jumpToAll(model, [chosen]);
  }

  jumpToAll(model: number, all: Chosen[]): void {
    const side = this.sides[model];
    this.active = model;
    const changed = side.uncover(side.roomOf(all[0]));
    if (changed) this.openPartners(model);
    side.selection = all;
    const boxes = all.flatMap((one) => side.spot(one) ?? []).map((spot) => side.picture.box(spot));
    if (boxes.length > 1) side.camera.fit(around(boxes), LEGIBLE, 80);
    else if (boxes.length) {
      side.camera.zoom = Math.max(LEGIBLE, Math.min(1.2, side.camera.zoom));
      side.camera.show(boxes[0]);
    }
    if (changed) this.pictureChanged(model);
    this.selectionChanged();
    this.panes[model].movedFromOutside();
    this.follow(model);
  }

  private show(side: Side, chosen: Chosen): void {
    const spot = side.spot(chosen);
    if (spot) side.camera.show(side.picture.box(spot));
    this.moved(side.graph.index);
    this.panes[side.graph.index].redraw();
  }

  centre(): void {
    const last = this.side.selection.at(-1);
    if (last) this.jump(this.active, last);
  }

  fit(): void {
    this.sides.forEach((side) => side.camera.fit(side.box()));
    this.panes.forEach((pane) => pane.redraw());
    this.moved(this.active);
  }

  walk(direction: Direction): void {
    const { side } = this;
    const last = side.selection.at(-1);
    const spot = last && side.spot(last);
    const next = spot ? neighbour(side.picture, spot, direction) : firstOf(side.picture, side.room);
    const chosen = next && side.chosenAt(next);
    if (chosen) this.choose(this.active, chosen, { show: true });
    else this.say("Nothing further this way");
  }

  /** Goes to a reader of the selection ("down") or to what computes its first operand ("up"), wherever that is. */
  followEdge(way: "up" | "down"): void {
    const { graph, selection } = this.side;
    const last = selection.at(-1);
    if (!last || last.kind === "room") return this.walk(way);
    const { inputs, outputs } = graph.model.nodes;
    const values = last.kind === "value" ? [last.ref] : way === "up" ? inputs[last.ref] : outputs[last.ref];
    const nodes = values.filter((value) => value >= 0).flatMap((value) => (way === "down" ? graph.readers(value) : [graph.model.values.producer[value]]));
    const node = nodes.find((one) => one >= 0);
    if (node !== undefined) this.jump(this.active, { kind: "node", ref: node });
    else this.say(way === "up" ? "Nothing computes it: a graph input or a constant" : "No node reads it");
  }

  selectedNodes(side: Side): number[] {
    return [...new Set(side.selection.flatMap((one) => (one.kind === "node" ? [one.ref] : one.kind === "room" ? side.graph.nodesWithin(one.ref) : [])))];
  }

  nameOf(side: Side, { kind, ref }: Chosen): string {
    if (kind === "node") return `${side.graph.op(ref).type} ${side.graph.nodeName(ref)}`;
    return kind === "room" ? side.graph.model.rooms[ref].title : side.graph.valueName(ref);
  }

  private clicked(model: number, hit: Hit | null, how: { shift: boolean; double: boolean }): void {
    const side = this.sides[model];
    const chosen = hit && side.chosenAt(hit);
    if (!hit || !chosen) return this.choose(model, null);
    const { kind } = side.graph.model.rooms[hit.frame.room].items;
    if (hit.part === "enter") return this.enter(model, chosen.ref);
    if (chosen.kind === "room" && (hit.part === "toggle" || how.double)) return this.toggle(model, chosen.ref);
    if (hit.item >= 0 && kind[hit.item] === 4) return this.followStub(model, hit, chosen);
    if (how.double && chosen.kind === "node") return this.enterSelected();
    this.choose(model, chosen, { add: how.shift });
  }

  /** A stub at the end of an edge leads to a reader, one at its beginning to what computes the value. */
  private followStub(model: number, hit: Hit, chosen: Chosen): void {
    const { graph } = this.sides[model];
    const producer = graph.model.values.producer[chosen.ref];
    const isEnd = hit.frame.rows.leaving.start[hit.item] === hit.frame.rows.leaving.start[hit.item + 1];
    const node = isEnd ? graph.readers(chosen.ref)[0] : producer;
    this.jump(model, node >= 0 ? { kind: "node", ref: node } : chosen);
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
    if (!this.sides[model] || (model === this.active && !focus)) return;
    this.active = model;
    this.page.layOut();
    this.page.pictureChanged();
    this.page.selectionChanged();
    if (focus) this.pane.canvas.focus();
  }

  setBoth(both: boolean): void {
    if (this.sides.length < 2) return;
    this.both = both;
    this.page.layOut();
    this.panes.forEach((pane) => pane.resize());
    this.follow(this.active);
    this.url.changed();
  }

  // Search and lists.

  searchFor(text: string): void {
    this.page.searchFor(text);
  }

  highlight(found: Chosen[]): void {
    this.highlights.found(found);
  }

  point(nodes: ReadonlySet<number>): void {
    this.highlights.point(nodes);
  }

  step(tab: Exclude<Tab, "outline" | "program">, by: number): void {
    this.page.step(tab, by);
  }

  say(text: string): void {
    this.page?.say(text);
  }

  async copy(text: string): Promise<void> {
    this.page.toast((await copy(text)) ? "Copied" : "The browser did not allow copying: select the text and copy it yourself");
  }

  saveSvg(): void {
    const { model } = this.side.graph;
    save(this.pane.svg(`${model.name}: ${model.rooms[this.side.room].title}`), fileName(model.name, "svg"), "image/svg+xml");
    this.page.toast("Saved what is visible as SVG");
  }
}

function around(boxes: Box[]): Box {
  const all = (name: keyof Box): number[] => boxes.map((box) => box[name]);
  const least = (numbers: number[]): number => numbers.reduce((a, b) => Math.min(a, b));
  const most = (numbers: number[]): number => numbers.reduce((a, b) => Math.max(a, b));
  return { left: least(all("left")), top: least(all("top")), right: most(all("right")), bottom: most(all("bottom")) };
}

function darkWanted(): boolean {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}
