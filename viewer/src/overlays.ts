/** Figures of nodes, and of the rooms that hold them. */

import type { Graph } from "./graph";
import type { Overlay } from "./scene";
import { additive, grouped, measured, numeric } from "./words";

export interface RoomFigure {
  /** The worst figure inside; NaN is worst of all. */
  worst: number;
  worstNode: number;
  /** How many nodes inside have the worst figure. */
  times: number;
  sum: number;
  count: number;
}

export class OverlayFigures {
  /** Row of the overlay by node; -1: the node has no figure. */
  private readonly rowOfNode: Int32Array;
  private readonly rooms = new Map<number, RoomFigure>();
  /** Rows of the overlay, worst first. */
  readonly order: number[];
  /** Whether figures may be added up: then a level stands for its sum, else for its worst node. */
  readonly adds: boolean;
  /** Levels below the main graph, the worst sum first; none where figures do not add up. */
  readonly levels: number[];
  readonly figures: number[];

  constructor(
    readonly overlay: Overlay,
    graph: Graph,
  ) {
    this.figures = overlay.figures.map(numeric);
    this.adds = overlay.scale !== "classes" && additive(overlay.unit);
    this.rowOfNode = new Int32Array(graph.model.nodes.op.length).fill(-1);
    this.order = this.figures
      .map((_, row) => row)
      .sort((a, b) => this.compare(this.figures[a], this.figures[b]) || a - b);
    overlay.nodes.forEach((node, row) => {
      this.rowOfNode[node] = row;
      const seen = new Set<number>();
      for (let room = graph.model.nodes.room[node]; room >= 0 && !seen.has(room); room = outside(graph, room)) {
        seen.add(room);
        this.count(room, node, this.figures[row]);
      }
    });
    const inner = this.adds ? [...this.rooms.keys()].filter((room) => room > 0) : [];
    this.levels = inner.sort((a, b) => this.compare(this.rooms.get(a)!.sum, this.rooms.get(b)!.sum) || a - b);
  }

  private count(room: number, node: number, figure: number): void {
    const known = this.rooms.get(room);
    if (!known) this.rooms.set(room, { worst: figure, worstNode: node, times: 1, sum: figure, count: 1 });
    else {
      known.sum += figure;
      known.count += 1;
      const order = this.compare(figure, known.worst);
      if (order === 0) known.times += 1;
      else if (order < 0) [known.worst, known.worstNode, known.times] = [figure, node, 1];
    }
  }

  /** Negative if `a` is worse than `b`. Not-a-number is worse than all numbers. */
  private compare(a: number, b: number): number {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a));
    return a === b ? 0 : (this.overlay.worst === "high") === a > b ? -1 : 1;
  }

  /** The figure of a node, or undefined. */
  node(node: number): number | undefined {
    const row = this.rowOfNode[node];
    return row < 0 ? undefined : this.figures[row];
  }

  text(node: number): string {
    const row = this.rowOfNode[node];
    return row < 0 ? "" : this.overlay.texts[row];
  }

  room(room: number): RoomFigure | undefined {
    return this.rooms.get(room);
  }

  write(figure: number): string {
    if (this.overlay.scale !== "classes") return measured(figure, this.overlay.unit);
    return this.overlay.classes[figure] ?? (Number.isNaN(figure) ? "unknown" : `class ${figure}`);
  }

  /**
   * The figure of a node in words; "" without one. A node that was fused into another one has none of the kernel's time:
   * its 0 is said to be its own, because the text beside it names the time of the kernel.
   */
  writeNode(node: number): string {
    const figure = this.node(node);
    if (figure === undefined) return "";
    const isOwn = figure === 0 && additive(this.overlay.unit) && this.text(node) !== "";
    return isOwn ? `${this.write(figure)} of its own` : this.write(figure);
  }

  /** The sums of levels, in the order of `levels`: what their colours are scaled by. */
  get sums(): number[] {
    return this.levels.map((room) => this.rooms.get(room)!.sum);
  }

  /** What a room says: the sum, where figures may be added, and the worst. */
  writeRoom(figure: RoomFigure): string {
    return this.roomTexts(figure)[0];
  }

  /** The same, the longest first: where one has no space, the next stands whole. */
  roomTexts(figure: RoomFigure): string[] {
    const worst = this.write(figure.worst);
    if (figure.count < 2) return [worst];
    if (this.overlay.scale === "classes") return [`${grouped(figure.times)} of ${grouped(figure.count)} ${worst}`];
    const sum = `Σ ${this.write(figure.sum)}`;
    return this.adds ? [`${sum}, worst ${worst}`, sum] : [`worst ${worst}`];
  }
}

/** The room around a room: its parent, or the room of the node that calls it. */
export function outside(graph: Graph, room: number): number {
  const host = graph.hostOf[room];
  return host >= 0 && graph.itemOfRoom[room] < 0 ? graph.model.nodes.room[host] : graph.model.rooms[room].parent;
}
