/** Computes, once, what the page derives from a model: readers of values, places of nodes, parents of rooms. */

import type { Model, Room } from "./scene";

export interface TypeParts {
  dtype: string;
  /** Dimensions; null if the text isn't a tensor type. */
  dims: { text: string; symbolic: boolean }[] | null;
}

export class Graph {
  /** The item that shows a node, in the node's room; -1 if none does. */
  readonly itemOfNode: Int32Array;
  /** The item that shows a room, in its parent; -1 for rooms that are only entered. */
  readonly itemOfRoom: Int32Array;
  /** The node whose branch, body or function a room is; -1 if none. */
  readonly hostOf: Int32Array;
  readonly roomByPath = new Map<string, number>();
  readonly nodeByName = new Map<string, number>();
  private readonly readerStart: Int32Array;
  private readonly readerList: Int32Array;
  private readonly types: (TypeParts | undefined)[];
  private childRooms: number[][] | null = null;

  constructor(
    readonly model: Model,
    readonly index: number,
  ) {
    const { nodes, values, rooms } = model;
    this.itemOfNode = new Int32Array(nodes.op.length).fill(-1);
    this.itemOfRoom = new Int32Array(rooms.length).fill(-1);
    this.hostOf = new Int32Array(rooms.length).fill(-1);
    this.types = new Array(model.types.length);
    rooms.forEach((room, at) => this.indexRoom(room, at));
    nodes.bodies.forEach((bodies, node) =>
      bodies.forEach(([, room]) => this.hostOf[room] < 0 && (this.hostOf[room] = node)),
    );
    nodes.name.forEach((name, node) => name && !this.nodeByName.has(name) && this.nodeByName.set(name, node));
    this.readerStart = new Int32Array(values.name.length + 1);
    this.readerList = this.countReaders();
  }

  private indexRoom(room: Room, at: number): void {
    if (!this.roomByPath.has(room.path)) this.roomByPath.set(room.path, at);
    const { kind, ref } = room.items;
    for (let item = 0; item < kind.length; item++) {
      if (kind[item] === 0 && this.model.nodes.room[ref[item]] === at) this.itemOfNode[ref[item]] = item;
      if (kind[item] === 1 && this.model.rooms[ref[item]].parent === at) this.itemOfRoom[ref[item]] = item;
    }
  }

  private countReaders(): Int32Array {
    const { inputs } = this.model.nodes;
    for (const read of inputs) for (const value of read) if (value >= 0) this.readerStart[value + 1] += 1;
    for (let value = 1; value < this.readerStart.length; value++)
      this.readerStart[value] += this.readerStart[value - 1];
    const next = this.readerStart.slice();
    const readers = new Int32Array(this.readerStart[this.readerStart.length - 1]);
    inputs.forEach((read, node) => read.forEach((value) => value >= 0 && (readers[next[value]++] = node)));
    return readers;
  }

  /** The nodes that read a value; one that reads it twice is named once. */
  readers(value: number): number[] {
    return [...new Set(this.readerList.subarray(this.readerStart[value], this.readerStart[value + 1]))];
  }

  /** Outer values that the bodies of a node read, besides its operands. */
  captured(node: number): number[] {
    return this.model.captured?.[node] ?? [];
  }

  /** The body whose own input or output a value is; -1 for others, such as outer values that a body reads. */
  ownerOf(value: number, way: "input" | "output"): number {
    const wanted = way === "input" ? 2 : 3;
    const holds = ({ items }: Room): boolean =>
      items.ref.some((ref, item) => ref === value && items.kind[item] === wanted);
    if (way === "input" && (this.model.values.kind[value] !== 1 || holds(this.model.rooms[0]))) return -1;
    return this.model.rooms.findIndex((room, at) => at > 0 && isBody(room) && holds(room));
  }

  /** Whether a value lies in a function, where it has another type in each call. */
  isOfFunction(value: number): boolean {
    const producer = this.model.values.producer[value] ?? -1;
    const body = producer >= 0 ? this.bodyOf(producer) : this.ownerOf(value, "input");
    return body >= 0 && this.model.rooms[body].kind === "function";
  }

  /** The formal name of an operand, such as "scale"; "" if the operator is not known. */
  role(node: number, way: "input" | "output", at: number): string {
    const op = this.op(node);
    const names = (way === "input" ? op.inputs : op.outputs) ?? [];
    const last = names.at(-1) ?? "";
    if (!last.endsWith("…") || at < names.length - 1) return names[at] ?? "";
    return `${last.slice(0, -1)}[${at - names.length + 1}]`;
  }

  /** Whether nodes have branches, bodies or functions: rooms that are not opened in their place. */
  get hasBodies(): boolean {
    return this.model.nodes.bodies.some((bodies) => bodies.length > 0);
  }

  /** The branch, body or function that a node lies in; -1 for nodes of the main graph. */
  bodyOf(node: number): number {
    let room = this.model.nodes.room[node];
    while (room > 0 && !isBody(this.model.rooms[room])) room = this.model.rooms[room].parent;
    return Math.max(room, 0) || -1;
  }

  /** Whether a node lies in a branch or body of one of `nodes`, however deep. */
  isHeld(node: number, nodes: ReadonlySet<number>): boolean {
    const body = this.bodyOf(node);
    if (body < 0 || this.model.rooms[body].kind === "function") return false;
    const host = this.hostOf[body];
    return host >= 0 && (nodes.has(host) || this.isHeld(host, nodes));
  }

  /** Rooms whose parent is this one. */
  children(room: number): number[] {
    if (!this.childRooms) {
      this.childRooms = this.model.rooms.map(() => []);
      this.model.rooms.forEach((one, at) => one.parent >= 0 && this.childRooms![one.parent].push(at));
    }
    return this.childRooms[room];
  }

  /** The room itself and all rooms inside it. */
  within(room: number): number[] {
    const found = [room];
    for (let at = 0; at < found.length; at++) for (const child of this.children(found[at])) found.push(child);
    return found;
  }

  nodesWithin(room: number): number[] {
    const rooms = new Set(this.within(room));
    const found: number[] = [];
    this.model.nodes.room.forEach((one, node) => rooms.has(one) && found.push(node));
    return found;
  }

  /** The room and those that it lies in, from the main graph down. */
  path(room: number): number[] {
    const rooms: number[] = [];
    for (let at = room; at >= 0; at = this.model.rooms[at].parent) rooms.unshift(at);
    return rooms;
  }

  op(node: number): Model["ops"][number] {
    return this.model.ops[this.model.nodes.op[node]];
  }

  /** The name of a node; nodes without one are called after their first output. */
  nodeName(node: number): string {
    const { name, outputs } = this.model.nodes;
    return name[node] || this.valueName(outputs[node].find((value) => value >= 0) ?? -1) || `node ${node}`;
  }

  valueName(value: number): string {
    return value < 0 ? "" : this.model.values.name[value] || `value ${value}`;
  }

  typeText(value: number): string {
    const type = value < 0 ? -1 : this.model.values.type[value];
    return type < 0 ? "" : this.model.types[type];
  }

  /** The parts of a value's type, to colour symbolic dimensions; null if the type isn't known. */
  type(value: number): TypeParts | null {
    const type = value < 0 ? -1 : this.model.values.type[value];
    if (type < 0 || !this.model.types[type]) return null;
    return (this.types[type] ??= typeParts(this.model.types[type]));
  }
}

/** Whether a room is a graph of its own inside the model. */
export function isBody(room: Room): boolean {
  return room.kind === "branch" || room.kind === "function";
}

/** "float32[batch, 3]" → float32, batch (symbolic) and 3. */
export function typeParts(text: string): TypeParts {
  const found = /^([^[\]]*)\[(.*)\]$/.exec(text.trim());
  if (!found || found[1].includes("(")) return { dtype: text, dims: null };
  const dims = found[2].trim() ? found[2].split(",").map((dim) => dim.trim()) : [];
  return { dtype: found[1], dims: dims.map((dim) => ({ text: dim || "?", symbolic: !/^\d+$/.test(dim) })) };
}

/** Dimensions may be long formulas; the picture shows their beginning, the inspector all. */
const LONGEST_DIM = 11;

export function shortDim(text: string): string {
  return text.length > LONGEST_DIM ? `${text.slice(0, LONGEST_DIM - 1)}…` : text;
}

/** The dimensions of a type as people write them, shortened: "batch×3×224". */
export function dimsText(parts: TypeParts): string {
  return parts.dims
    ? parts.dims.length
      ? parts.dims.map((dim) => shortDim(dim.text)).join("×")
      : "scalar"
    : parts.dtype;
}
