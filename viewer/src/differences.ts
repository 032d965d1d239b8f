/** What changed from the first model to the second, by node. */

import type { Graph } from "./graph";
import { outside } from "./overlays";
import type { Difference } from "./scene";

export type State = "equal" | "attributes" | "weights" | "both" | "operator" | "wiring" | "removed" | "added";
const STATES: State[] = ["equal", "attributes", "weights", "both", "operator", "wiring"];

export const STATE_WORDS: Record<State, string> = {
  equal: "equal",
  attributes: "attributes changed",
  weights: "weights changed",
  both: "attributes and weights changed",
  operator: "operator changed",
  wiring: "wiring or type changed",
  removed: "removed",
  added: "added",
};

/** The sign of a state, so that it isn't told by colour alone. */
export const STATE_SIGNS: Record<State, string> = {
  equal: "",
  attributes: "≠",
  weights: "≠",
  both: "≠",
  operator: "≠",
  wiring: "≠",
  removed: "−",
  added: "+",
};

export interface Change {
  state: State;
  /** The node in the first and in the second model; -1 where there is none. */
  nodes: [number, number];
  lines: string[];
}

export interface RoomChanges {
  added: number;
  removed: number;
  changed: number;
}

export class Differences {
  readonly changes: Change[] = [];
  private readonly states: [Map<number, State>, Map<number, State>] = [new Map(), new Map()];
  private readonly partners: [Map<number, number>, Map<number, number>] = [new Map(), new Map()];
  private readonly rooms: [Map<number, RoomChanges>, Map<number, RoomChanges>] = [new Map(), new Map()];
  private readonly changeOf: [Map<number, number>, Map<number, number>] = [new Map(), new Map()];

  constructor(
    difference: Difference,
    readonly graphs: [Graph, Graph],
  ) {
    difference.pairs.forEach(([a, b, code], pair) => {
      const state = STATES[code] ?? "wiring";
      if (a >= 0) this.states[0].set(a, state);
      if (b >= 0) this.states[1].set(b, state);
      if (a >= 0 && b >= 0) {
        this.partners[0].set(a, b);
        this.partners[1].set(b, a);
      }
      if (state !== "equal") this.add({ state, nodes: [a, b], lines: difference.changes[pair] ?? [] });
    });
    for (const node of difference.removed) this.add({ state: "removed", nodes: [node, -1], lines: [] });
    for (const node of difference.added) this.add({ state: "added", nodes: [-1, node], lines: [] });
    this.order();
  }

  private add(change: Change): void {
    this.changes.push(change);
    change.nodes.forEach((node, model) => {
      if (node < 0) return;
      this.states[model].set(node, change.state);
      this.countRooms(model, node, change.state);
    });
  }

  private countRooms(model: number, node: number, state: State): void {
    const graph = this.graphs[model];
    const seen = new Set<number>();
    for (let room = graph.model.nodes.room[node]; room >= 0 && !seen.has(room); room = outside(graph, room)) {
      seen.add(room);
      const known = this.rooms[model].get(room) ?? { added: 0, removed: 0, changed: 0 };
      known[state === "added" || state === "removed" ? state : "changed"] += 1;
      this.rooms[model].set(room, known);
    }
  }

  /** In the order of the nodes in the files, an added node where it stands in the second. */
  private order(): void {
    const [first, second] = this.graphs.map((graph) => Math.max(1, graph.model.nodes.op.length));
    const place = ({ nodes: [a, b] }: Change): number => (a >= 0 ? a / first : b / second);
    this.changes.sort((a, b) => place(a) - place(b));
    this.changes.forEach((change, at) =>
      change.nodes.forEach((node, model) => node >= 0 && this.changeOf[model].set(node, at)),
    );
  }

  state(model: number, node: number): State | undefined {
    return this.states[model].get(node);
  }

  /** The node of the other model that is paired with this one; -1 if none is. */
  partner(model: number, node: number): number {
    return this.partners[model].get(node) ?? -1;
  }

  room(model: number, room: number): RoomChanges | undefined {
    return this.rooms[model].get(room);
  }

  /** The place of a node in `changes`; -1 if it did not change. */
  change(model: number, node: number): number {
    return this.changeOf[model].get(node) ?? -1;
  }

  /** The room of the other model that holds the partners of most nodes of this one; -1 if there are none. */
  partnerRoom(model: number, room: number): number {
    const here = this.graphs[model];
    const there = this.graphs[1 - model];
    if (room === 0) return 0;
    const same = there.roomByPath.get(here.model.rooms[room].path);
    if (same !== undefined) return same;
    const votes = new Map<number, number>();
    const { kind, ref } = here.model.rooms[room].items;
    kind.forEach((one, at) => {
      const partner = one === 0 ? this.partner(model, ref[at]) : -1;
      if (partner < 0) return;
      const other = there.model.nodes.room[partner];
      votes.set(other, (votes.get(other) ?? 0) + 1);
    });
    return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
  }
}
