/** Scenes of chance for the tests: rooms in rooms, rows with items that may be too near to each other, edges with bends. */

import type { Model, Room, Scene } from "../src/scene";

/** A generator of numbers from 0 to 1 that gives the same ones for the same seed (mulberry32). */
export function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function emptyModel(): Model {
  return {
    name: "m.onnx",
    path: "m.onnx",
    hash: "",
    facts: [],
    ops: [
      { type: "Relu", domain: "", family: "activation", doc: "" },
      { type: "Conv", domain: "", family: "product", doc: "" },
    ],
    types: ["float32[batch, 3, 224]", "int64[4]"],
    modules: [{ path: "encoder.layer.0", type: "Layer" }],
    sources: [{ file: "model.py", line: 41, text: "x = self.conv(x)" }],
    nodes: { name: [], op: [], room: [], module: [], source: [], inputs: [], outputs: [], attributes: [], bodies: [] },
    values: { name: [], type: [], producer: [], kind: [] },
    constants: {},
    rooms: [],
  };
}

export function addNode(
  model: Model,
  room: number,
  inputs: number[] = [],
  about: { name?: string; op?: number; type?: number } = {},
): { node: number; value: number } {
  const { nodes, values } = model;
  const node = nodes.op.length;
  const value = addValue(model, `${about.name ?? `n${node}`}_out`, about.type ?? 0, 0, node);
  nodes.name.push(about.name ?? `n${node}`);
  nodes.op.push(about.op ?? node % 2);
  nodes.room.push(room);
  nodes.module.push(node % 3 ? -1 : 0);
  nodes.source.push(node % 4 ? -1 : 0);
  nodes.inputs.push(inputs);
  nodes.outputs.push([value]);
  nodes.attributes.push([]);
  nodes.bodies.push([]);
  values.producer[value] = node;
  return { node, value };
}

export function addValue(model: Model, name: string, type = 0, kind = 0, producer = -1): number {
  model.values.name.push(name);
  model.values.type.push(type);
  model.values.kind.push(kind);
  model.values.producer.push(producer);
  return model.values.name.length - 1;
}

export function emptyRoom(title: string, parent: number, kind: Room["kind"] = "module"): Room {
  return {
    title,
    kind,
    path: title,
    parent,
    count: 0,
    repeats: 1,
    items: { kind: [], ref: [], row: [], x: [] },
    edges: { from: [], to: [], value: [], bends: [] },
  };
}

/** A model with `rooms` rooms, each of which lies in one that was made before. */
export function randomModel(seed: number, rooms = 9): Model {
  const next = chance(seed);
  const model = emptyModel();
  for (let at = 0; at < rooms; at++) model.rooms.push(emptyRoom(`room${at}`, at === 0 ? -1 : Math.floor(next() * at)));
  model.rooms.forEach((room, at) => fill(model, room, at, next));
  return model;
}

function fill(model: Model, room: Room, at: number, next: () => number): void {
  const children = model.rooms.flatMap((one, child) => (one.parent === at && child > 0 ? [child] : []));
  const rows = 2 + Math.floor(next() * 5);
  const add = (kind: 0 | 1, ref: number): void => {
    room.items.kind.push(kind);
    room.items.ref.push(ref);
    room.items.row.push(Math.floor(next() * rows));
    // Some stand too near to each other, or at the same place.
    room.items.x.push(Math.round(next() * 12) / 2);
  };
  for (let count = Math.floor(next() * 14); count >= 0; count--) add(0, addNode(model, at).node);
  for (const child of children) add(1, child);
  for (let tries = 0; tries < 20; tries++) {
    const [from, to] = [Math.floor(next() * room.items.kind.length), Math.floor(next() * room.items.kind.length)];
    const crossed = room.items.row[to] - room.items.row[from] - 1;
    if (crossed < 0) continue;
    room.edges.from.push(from);
    room.edges.to.push(to);
    room.edges.value.push(0);
    room.edges.bends.push(Array.from({ length: crossed }, () => next() * 6));
  }
  room.count = room.items.kind.filter((kind) => kind === 0).length;
}

export function sceneOf(...models: Model[]): Scene {
  return { format: 1, headline: "", notes: [], models, overlays: [], difference: null, program: null, warnings: [], start: "" };
}
