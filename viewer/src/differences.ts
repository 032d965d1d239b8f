/** Holds the changes from the first model to the second, by node. */

import { drawnOrder } from "./drawn_order";
import type { Graph } from "./graph";
import { outside } from "./overlays";
import type { Difference } from "./scene";
import { plural } from "./words";

export type State =
  "equal" | "attributes" | "weights" | "both" | "operator" | "wiring" | "removed" | "added" | "otherwise";
/** The group under which a change is listed, coloured and counted. */
export type Group = "removed" | "added" | "changed" | "otherwise";
export const GROUPS: Group[] = ["removed", "added", "changed", "otherwise"];
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
  otherwise: "computed otherwise",
};

export const GROUP_WORDS: Record<Group, string> = {
  removed: "removed",
  added: "added",
  changed: "changed",
  otherwise: STATE_WORDS.otherwise,
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
  otherwise: "≈",
};

export const GROUP_SIGNS: Record<Group, string> = {
  removed: STATE_SIGNS.removed,
  added: STATE_SIGNS.added,
  changed: STATE_SIGNS.operator,
  otherwise: STATE_SIGNS.otherwise,
};

/** The group of a state; null for equal nodes. */
export function groupOf(state: State): Group | null {
  if (state === "equal") return null;
  return state === "added" || state === "removed" || state === "otherwise" ? state : "changed";
}

export interface Change {
  state: State;
  /** The nodes in the first and in the second model: one of each pair, several of a region, none where there are none. */
  nodes: [number[], number[]];
  lines: string[];
}

/** Counts of nodes by group. */
export type RoomChanges = Record<Group, number>;

export class Differences {
  readonly changes: Change[] = [];
  private readonly states: [Map<number, State>, Map<number, State>] = [new Map(), new Map()];
  private readonly partners: [Map<number, number>, Map<number, number>] = [new Map(), new Map()];
  private readonly rooms: [Map<number, RoomChanges>, Map<number, RoomChanges>] = [new Map(), new Map()];
  private readonly changeOf: [Map<number, number>, Map<number, number>] = [new Map(), new Map()];
  private readonly roundings: [Map<number, string[]>, Map<number, string[]>] = [new Map(), new Map()];

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
      const nodes: Change["nodes"] = [a >= 0 ? [a] : [], b >= 0 ? [b] : []];
      if (state !== "equal") this.add({ state, nodes, lines: difference.changes[pair] ?? [] });
    });
    for (const pair of difference.rounded ?? []) {
      const [a, b] = difference.pairs[pair] ?? [-1, -1];
      if (a >= 0) this.roundings[0].set(a, difference.changes[pair] ?? []);
      if (b >= 0) this.roundings[1].set(b, difference.changes[pair] ?? []);
    }
    const regions = (difference.regions ?? []).filter((nodes) => nodes.some((side) => side.length));
    for (const nodes of regions) this.add({ state: "otherwise", nodes, lines: [regionLine(nodes)] });
    const alone = (model: number, list: number[]): number[] => list.filter((node) => !this.states[model].has(node));
    const [lost, made] = (difference.stored ?? [[], []]).map((nodes) => new Set(nodes));
    const lines = (own: Set<number>, node: number): string[] => (own.has(node) ? ["it computes from weights alone"] : []);
    for (const node of alone(0, difference.removed))
      this.add({ state: "removed", nodes: [[node], []], lines: lines(lost, node) });
    for (const node of alone(1, difference.added))
      this.add({ state: "added", nodes: [[], [node]], lines: lines(made, node) });
    this.order();
  }

  private add(change: Change): void {
    this.changes.push(change);
    change.nodes.forEach((nodes, model) => {
      for (const node of nodes) {
        if (change.state === "otherwise" && this.states[model].has(node)) continue; // it stands for the other side only
        this.states[model].set(node, change.state);
        this.countRooms(model, node, change.state);
      }
    });
  }

  private countRooms(model: number, node: number, state: State): void {
    const group = groupOf(state);
    if (!group) return;
    const graph = this.graphs[model];
    const seen = new Set<number>();
    for (let room = graph.model.nodes.room[node]; room >= 0 && !seen.has(room); room = outside(graph, room)) {
      seen.add(room);
      const known = this.rooms[model].get(room) ?? { added: 0, removed: 0, changed: 0, otherwise: 0 };
      known[group] += 1;
      this.rooms[model].set(room, known);
    }
  }

  /** In the order of the first picture, from the inputs on; an added node after the nearest node before it that has a partner. */
  private order(): void {
    const drawn = this.graphs.map(drawnOrder);
    const first = (model: number, nodes: number[]): number =>
      nodes.reduce((least, node) => Math.min(least, drawn[model][node]), Infinity);
    const after = this.placesOfSecond(drawn);
    const place = ({ nodes: [ours, theirs] }: Change): number =>
      ours.length ? first(0, ours) : after[first(1, theirs)];
    const keys = new Map(this.changes.map((change) => [change, [place(change), first(1, change.nodes[1])]]));
    this.changes.sort((a, b) => {
      const [one, other] = [keys.get(a)!, keys.get(b)!];
      return one[0] - other[0] || (one[1] === other[1] ? 0 : one[1] - other[1]);
    });
    this.changes.forEach((change, at) =>
      change.nodes.forEach((nodes, model) => nodes.forEach((node) => this.changeOf[model].set(node, at))),
    );
  }

  /** For each place of the second picture, where it lies in the first: half a place after the last counterpart before it. */
  private placesOfSecond(drawn: Int32Array[]): Float64Array {
    const regions = new Map<number, number>();
    for (const { nodes } of this.changes)
      for (const node of nodes[1]) if (nodes[0].length) regions.set(node, nodes[0][0]);
    const nodes = Array.from(drawn[1], (_, node) => node).sort((a, b) => drawn[1][a] - drawn[1][b]);
    const places = new Float64Array(nodes.length + 1);
    let last = -1;
    for (const node of nodes) {
      const partner = this.partners[1].get(node) ?? regions.get(node);
      if (partner !== undefined) last = drawn[0][partner];
      places[drawn[1][node]] = last + 0.5;
    }
    return places;
  }

  state(model: number, node: number): State | undefined {
    return this.states[model].get(node);
  }

  /** Describes a node's state: a sentence, then a line for each change or other rounding. */
  words(model: number, node: number): string[] {
    const state = this.state(model, node);
    if (!state) return [];
    const rounded = state === "equal" ? this.roundings[model].get(node) : undefined;
    if (rounded) return ["equal up to rounding", ...rounded];
    const at = this.change(model, node);
    return [STATE_WORDS[state], ...(at < 0 ? [] : this.changes[at].lines)];
  }

  /** The node of the other model that is paired with this one; -1 if none is. */
  partner(model: number, node: number): number {
    return this.partners[model].get(node) ?? -1;
  }

  /** The nodes of the other model that stand for this one: its partner, or all that compute the same region. */
  counterparts(model: number, node: number): number[] {
    const partner = this.partner(model, node);
    if (partner >= 0) return [partner];
    const at = this.change(model, node);
    return at < 0 ? [] : this.changes[at].nodes[1 - model];
  }

  /** Whether some nodes compute what other nodes of the other model compute. */
  get hasRegions(): boolean {
    return this.changes.some((change) => change.state === "otherwise");
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

/** How many nodes of both models a region has, as one line. */
function regionLine([ours, theirs]: [number[], number[]]): string {
  if (!theirs.length) return `${plural(ours.length, "node")} removed: the results are elsewhere in the new model`;
  if (!ours.length) return `${plural(theirs.length, "node")} added: the results are elsewhere in the old model`;
  return `${plural(ours.length, "node")} → ${plural(theirs.length, "node")} with the same results`;
}
