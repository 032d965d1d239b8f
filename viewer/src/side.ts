/** One model of the page: which room is shown, which rooms are open, what is selected. No elements of the page here. */

import { Camera } from "./camera";
import { Composer } from "./compose";
import type { Marks } from "./draw";
import type { Graph } from "./graph";
import { Labels } from "./labels";
import type { Look } from "./looks";
import { outside } from "./overlays";
import { around, Picture, type Box, type Spot } from "./picture";
import { listOf } from "./rows";
import { firstOf } from "./walk";

export type Chosen = { kind: "node" | "room" | "value"; ref: number };

/** The most items that "Open all" opens, so that the picture stays readable. */
export const MOST_OPENED = 5000;
/** A picture is first shown whole if it is still this large, else from its top. */
const LEAST_FIRST_ZOOM = 0.75;
/** A room with more items is entered by a jump, and not opened in its place. */
const MOST_IN_PLACE = 3000;
/** Rooms of so many nodes are opened for a jump to several. A choice: as many as a region of a difference has. */
const MOST_UNCOVERED = 40;

export class Side {
  readonly composer: Composer;
  readonly labels: Labels;
  readonly camera = new Camera();
  room = 0;
  opened = new Set<number>();
  picture: Picture;
  selection: Chosen[] = [];
  found: Chosen[] = [];
  pointed: ReadonlySet<number> = new Set();
  /** The looks of items; the page sets them. */
  paint!: Look;
  marks: Marks;

  constructor(readonly graph: Graph) {
    this.composer = new Composer(graph);
    this.labels = new Labels(graph);
    this.picture = new Picture(graph, this.composer, 0, this.opened);
    this.marks = this.mark();
  }

  /** Composes the picture anew, after the room or the opened rooms have changed. */
  recompose(): void {
    this.picture = new Picture(this.graph, this.composer, this.room, this.opened);
    this.remark();
  }

  remark(): void {
    this.marks = this.mark();
  }

  /** Opens or closes a room in its place; its top stays where it is on the screen. */
  toggle(room: number): void {
    const before = this.picture.spotOfRoom(room);
    const old = before && this.picture.box(before);
    if (!this.opened.delete(room)) this.opened.add(room);
    this.recompose();
    const after = this.picture.spotOfRoom(room);
    if (!old || !after) return;
    const now = this.picture.box(after);
    this.camera.x += (now.left + now.right - old.left - old.right) / 2;
    this.camera.y += now.top - old.top;
  }

  /** The whole picture. */
  box(): Box {
    return this.picture.box({ frame: this.picture.root, item: -1 });
  }

  /** Shows the picture whole where it stays legible, else its top. */
  home(): void {
    const spot = firstOf(this.picture, this.room);
    this.camera.fitTop(this.box(), LEAST_FIRST_ZOOM);
    if (this.camera.zoom === LEAST_FIRST_ZOOM && spot) this.camera.x = spot.frame.x[spot.item];
  }

  enter(room: number): void {
    this.room = room;
    this.recompose();
  }

  /** Opens rooms from the outside in, as long as the picture stays within `MOST_OPENED` items. Returns whether all are open. */
  openAll(): boolean {
    const { rooms } = this.graph.model;
    let size = rooms[this.room].items.kind.length;
    let all = true;
    const queue = [this.room];
    for (let at = 0; at < queue.length; at++) {
      for (const child of this.graph.children(queue[at])) {
        if (this.graph.itemOfRoom[child] < 0) continue;
        size += rooms[child].items.kind.length;
        if (size > MOST_OPENED) all = false;
        else {
          this.opened.add(child);
          queue.push(child);
        }
        if (!all) break;
      }
    }
    this.recompose();
    return all;
  }

  closeAll(): void {
    this.opened.clear();
    this.recompose();
  }

  /** Makes a room visible: opens what it lies in, or enters where that can't be done. Returns whether the picture changed. */
  uncover(room: number): boolean {
    const chain: number[] = [];
    let top = this.room;
    for (let at = room; at !== this.room; at = this.graph.model.rooms[at].parent) {
      const inPlace = this.graph.itemOfRoom[at] >= 0 && this.graph.model.rooms[at].items.kind.length <= MOST_IN_PLACE;
      if (at < 0 || !inPlace) {
        top = at < 0 ? 0 : at;
        break;
      }
      chain.push(at);
    }
    const closed = chain.filter((one) => !this.opened.has(one));
    if (!closed.length && top === this.room) return false;
    closed.forEach((one) => this.opened.add(one));
    this.room = top;
    this.recompose();
    return true;
  }

  /** Makes several things visible, the first one whatever becomes of the others. Returns whether the picture changed. */
  uncoverAll(all: Chosen[]): boolean {
    const rooms = [...new Set(all.slice(0, MOST_UNCOVERED).map((one) => this.roomOf(one)))].reverse();
    return rooms.map((room) => this.uncover(room)).some(Boolean);
  }

  /** The room that shows a chosen thing as an item. */
  roomOf(chosen: Chosen): number {
    const { nodes, values, rooms } = this.graph.model;
    if (chosen.kind === "node") return nodes.room[chosen.ref];
    if (chosen.kind === "room") return this.graph.itemOfRoom[chosen.ref] >= 0 ? rooms[chosen.ref].parent : chosen.ref;
    const producer = values.producer[chosen.ref];
    const near = producer >= 0 ? producer : this.graph.readers(chosen.ref)[0];
    return near === undefined ? 0 : nodes.room[near];
  }

  spot(chosen: Chosen): Spot | null {
    if (chosen.kind === "node") return this.picture.spotOfNode(chosen.ref);
    if (chosen.kind === "room") return this.picture.spotOfRoom(chosen.ref);
    const shown = this.picture.spotOfValue(chosen.ref);
    if (shown) return shown;
    const { producer } = this.graph.model.values;
    const near = producer[chosen.ref] >= 0 ? producer[chosen.ref] : this.graph.readers(chosen.ref)[0];
    return near === undefined ? null : this.picture.spotOfNode(near);
  }

  /** The boxes of so many of these things as are looked at together, from the top down. */
  boxes(all: Chosen[]): Box[] {
    const spots = all.slice(0, MOST_UNCOVERED).flatMap((one) => this.spot(one) ?? []);
    return spots.map((spot) => this.picture.box(spot)).sort((a, b) => a.top - b.top || a.left - b.left);
  }

  /** The box to look at for several things: around all of them if that can be seen at the present zoom, else the first. */
  place(all: Chosen[]): Box | null {
    const boxes = this.boxes(all);
    if (!boxes.length) return null;
    const whole = around(boxes);
    return this.camera.holds(whole) ? whole : boxes[0];
  }

  /** Returns the thing that an item stands for. */
  chosenAt({ frame, item }: Spot): Chosen | null {
    if (item < 0) return { kind: "room", ref: frame.room };
    const { kind, ref } = this.graph.model.rooms[frame.room].items;
    if (ref[item] < 0) return null;
    return { kind: kind[item] === 0 ? "node" : kind[item] === 1 ? "room" : "value", ref: ref[item] };
  }

  private mark(): Marks {
    const of = (kind: Chosen["kind"], list: Chosen[]): Set<number> =>
      new Set(list.filter((one) => one.kind === kind).map((one) => one.ref));
    const foundInRooms = new Map<number, number>();
    for (const { kind, ref } of this.found) {
      if (kind === "room") foundInRooms.set(ref, (foundInRooms.get(ref) ?? 0) + 1);
      if (kind !== "node") continue;
      const seen = new Set<number>();
      for (
        let room = this.graph.model.nodes.room[ref];
        room >= 0 && !seen.has(room);
        room = outside(this.graph, room)
      ) {
        seen.add(room);
        foundInRooms.set(room, (foundInRooms.get(room) ?? 0) + 1);
      }
    }
    return {
      nodes: of("node", this.selection),
      rooms: of("room", this.selection),
      values: of("value", this.selection),
      pointed: this.pointed,
      foundNodes: of("node", this.found),
      foundValues: of("value", this.found),
      foundInRooms,
      edges: this.strongEdges(),
    };
  }

  /** The edges of selected items, and those that carry a selected value. */
  private strongEdges(): Map<number, Set<number>> {
    const strong = new Map<number, Set<number>>();
    const add = (room: number, edge: number): void => {
      if (!strong.has(room)) strong.set(room, new Set());
      strong.get(room)!.add(edge);
    };
    for (const chosen of this.selection) {
      if (chosen.kind === "value") {
        for (const frame of this.picture.frames.values()) {
          this.graph.model.rooms[frame.room].edges.value.forEach(
            (value, edge) => value === chosen.ref && add(frame.room, edge),
          );
        }
        continue;
      }
      const spot =
        chosen.kind === "node" ? this.picture.spotOfNode(chosen.ref) : this.picture.spotOfRoom(chosen.ref, false);
      if (!spot || spot.item < 0) continue;
      for (const edge of listOf(spot.frame.rows.leaving, spot.item)) add(spot.frame.room, edge);
      for (const edge of listOf(spot.frame.rows.arriving, spot.item)) add(spot.frame.room, edge);
    }
    return strong;
  }
}
