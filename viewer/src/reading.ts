/**
 * Reads the scene, and repairs broken parts, so that all later code may rely on lists of equal length and on
 * indices that point somewhere. The notes list the repairs; a scene that can't be read is an `Unreadable`.
 */

import type { Difference, Edges, Items, Model, Nodes, Overlay, Program, Room, Scene, Values } from "./scene";
import { asHere, shortFloats } from "./words";

export const FORMAT = 1;

/** A scene of which nothing can be shown; the message says why in plain words. */
export class Unreadable extends Error {}

const AGAIN = "Write the page again with `onnxsmith view`.";

type Raw = Record<string, unknown>;

export function read(text: string | null): Scene {
  if (text === null || !text.trim()) throw new Unreadable(`This page holds no model: the scene is missing. ${AGAIN}`);
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new Unreadable(
      `The scene in this page is not complete JSON (${(error as Error).message}). The file may have been cut off. ${AGAIN}`,
    );
  }
  if (typeof raw !== "object" || raw === null)
    throw new Unreadable(`The scene in this page is not an object. ${AGAIN}`);
  const scene = raw as Raw;
  const notes = strings(scene.notes).map(asHere);
  const models = list(scene.models).map((model, index) => asModel(model, index, notes));
  if (typeof scene.format !== "number" || scene.format > FORMAT) {
    const said = `This page was given a scene of format ${String(scene.format)}; it knows format ${FORMAT}.`;
    if (!models.length) throw new Unreadable(`${said} A newer onnxsmith wrote it. ${AGAIN}`);
    notes.unshift(`${said} What it knows is shown; the rest is left out.`);
  }
  if (!models.length) throw new Unreadable(`The scene holds no model. ${AGAIN}`);
  return {
    format: FORMAT,
    headline: string(scene.headline),
    notes,
    models,
    overlays: list(scene.overlays)
      .map((overlay) => asOverlay(overlay, models))
      .filter((overlay) => overlay.nodes.length),
    difference: asDifference(scene.difference, models),
    program: asProgram(scene.program, models[0]),
    warnings: strings(scene.warnings).map(asHere),
    start: string(scene.start),
  };
}

function asModel(value: unknown, index: number, notes: string[]): Model {
  const raw = object(value);
  const model: Model = {
    name: string(raw.name) || `model ${index + 1}`,
    path: string(raw.path) || string(raw.name),
    hash: string(raw.hash),
    facts: list(raw.facts).map((fact) => [string(list(fact)[0]), string(list(fact)[1])]),
    ops: list(raw.ops).map((op) => {
      const known = object(op);
      return {
        type: string(known.type) || "?",
        domain: string(known.domain),
        family: string(known.family) || "other",
        doc: string(known.doc),
        ...(known.inputs ? { inputs: strings(known.inputs) } : {}),
        ...(known.outputs ? { outputs: strings(known.outputs) } : {}),
      };
    }),
    types: strings(raw.types),
    modules: list(raw.modules).map((module) => ({
      path: string(object(module).path),
      type: string(object(module).type),
    })),
    sources: list(raw.sources).map((source) => {
      const known = object(source);
      return { file: string(known.file), line: integer(known.line, 0), text: string(known.text) };
    }),
    nodes: { name: [], op: [], room: [], module: [], source: [], inputs: [], outputs: [], attributes: [], bodies: [] },
    values: { name: [], type: [], producer: [], kind: [] },
    constants: {},
    rooms: [],
  };
  if (!model.ops.length) model.ops.push({ type: "?", domain: "", family: "other", doc: "" });
  const rooms = list(raw.rooms);
  if (!rooms.length) {
    notes.push(`${model.name}: the scene has no levels, so that there is nothing to draw.`);
    rooms.push({ title: model.name, kind: "graph", path: "", parent: -1, count: 0, repeats: 1 });
  }
  model.values = asValues(object(raw.values), model, list(object(raw.nodes).op).length);
  model.nodes = asNodes(object(raw.nodes), model, rooms.length);
  model.constants = asConstants(object(raw.constants), model);
  if (raw.captured) model.captured = asCaptured(object(raw.captured), model);
  if (raw.docs)
    model.docs = Object.fromEntries(Object.entries(object(raw.docs)).map(([node, text]) => [node, string(text)]));
  model.rooms = rooms.map((room, place) => asRoom(object(room), place, model, rooms.length, notes));
  cutCircles(model.rooms);
  return model;
}

function asValues(raw: Raw, model: Model, nodes: number): Values {
  const name = strings(raw.name);
  return {
    name,
    type: name.map((_, at) => index(list(raw.type)[at], model.types.length)),
    producer: name.map((_, at) => index(list(raw.producer)[at], nodes)),
    kind: name.map((_, at) => integer(list(raw.kind)[at], 0)),
  };
}

function asNodes(raw: Raw, model: Model, rooms: number): Nodes {
  const count = list(raw.op).length;
  const values = model.values.name.length;
  const column = <T>(name: string, make: (value: unknown) => T): T[] => {
    const cells = list(raw[name]);
    return Array.from({ length: count }, (_, at) => make(cells[at]));
  };
  return {
    name: column("name", string),
    op: column("op", (value) => Math.max(0, index(value, model.ops.length))),
    room: column("room", (value) => Math.max(0, index(value, rooms))),
    module: column("module", (value) => index(value, model.modules.length)),
    source: column("source", (value) => index(value, model.sources.length)),
    inputs: column("inputs", (value) => list(value).map((one) => index(one, values))),
    outputs: column("outputs", (value) => list(value).map((one) => index(one, values))),
    attributes: column("attributes", (value) =>
      list(value).map(
        (one) => [string(list(one)[0]), shortFloats(string(list(one)[1])), list(one)[2] ? 1 : 0] as [string, string, 0 | 1],
      ),
    ),
    bodies: column("bodies", (value) =>
      list(value)
        .map((one) => [string(list(one)[0]), index(list(one)[1], rooms)] as [string, number])
        .filter(([, room]) => room >= 0),
    ),
  };
}

function asCaptured(raw: Raw, model: Model): NonNullable<Model["captured"]> {
  const known = Object.entries(raw).filter(([node]) => index(Number(node), model.nodes.op.length) >= 0);
  return Object.fromEntries(known.map(([node, values]) => [node, indices(values, model.values.name.length)]));
}

function asConstants(raw: Raw, model: Model): Model["constants"] {
  const isDouble = (value: number): boolean => (model.types[model.values.type[value]] ?? "").startsWith("float64");
  const constants: Model["constants"] = {};
  for (const [value, one] of Object.entries(raw)) {
    const known = object(one);
    constants[Number(value)] = {
      bytes: integer(known.bytes, 0),
      file: string(known.file),
      form: string(known.form),
      aliases: strings(known.aliases),
      figures: known.figures ? (object(known.figures) as Model["constants"][number]["figures"]) : null,
      histogram: list(known.histogram).map((count) => Number(count) || 0),
      text: isDouble(Number(value)) ? string(known.text) : shortFloats(string(known.text)),
    };
  }
  return constants;
}

const KINDS = ["graph", "function", "branch", "module", "block"] as const;

function asRoom(raw: Raw, place: number, model: Model, rooms: number, notes: string[]): Room {
  const items = asItems(object(raw.items), model, rooms);
  const { edges, dropped } = asEdges(object(raw.edges), items, model);
  if (dropped)
    notes.push(
      `${model.name}: ${dropped} edges of "${string(raw.title)}" name items that are not there, and are not drawn.`,
    );
  return {
    title: string(raw.title) || string(raw.path) || `room ${place}`,
    kind: KINDS.find((kind) => kind === raw.kind) ?? "graph",
    path: typeof raw.path === "string" ? raw.path : String(place),
    parent: place === 0 ? -1 : index(raw.parent, rooms),
    count: integer(raw.count, items.kind.filter((kind) => kind === 0).length),
    repeats: integer(raw.repeats, 1),
    items,
    edges,
  };
}

/** Items that name nothing are left out of the picture, but keep their index, which edges use: they become stubs without a value. */
function asItems(raw: Raw, model: Model, rooms: number): Items {
  const kinds = list(raw.kind).map((kind) => Math.min(4, Math.max(0, integer(kind, 4)))) as Items["kind"];
  const ref = kinds.map((kind, at) => {
    const length = kind === 0 ? model.nodes.op.length : kind === 1 ? rooms : model.values.name.length;
    return index(list(raw.ref)[at], length);
  });
  return {
    kind: kinds.map((kind, at) => (ref[at] < 0 ? 4 : kind)),
    ref,
    row: kinds.map((_, at) => Math.max(0, integer(list(raw.row)[at], at))),
    x: kinds.map((_, at) => finite(list(raw.x)[at])),
  };
}

function asEdges(raw: Raw, items: Items, model: Model): { edges: Edges; dropped: number } {
  const edges: Edges = { from: [], to: [], value: [], bends: [] };
  const from = list(raw.from);
  const count = items.kind.length;
  for (let at = 0; at < from.length; at++) {
    const source = index(from[at], count);
    const target = index(list(raw.to)[at], count);
    if (source < 0 || target < 0) continue;
    const bends = list(list(raw.bends)[at]).map(finite);
    const rows = items.row[target] - items.row[source] - 1;
    edges.from.push(source);
    edges.to.push(target);
    edges.value.push(index(list(raw.value)[at], model.values.name.length));
    edges.bends.push(bends.length === rows ? bends : evenly(items.x[source], items.x[target], rows));
  }
  return { edges, dropped: from.length - edges.from.length };
}

/** Bends on a straight line, for an edge whose own are missing. */
function evenly(from: number, to: number, rows: number): number[] {
  return Array.from({ length: Math.max(0, rows) }, (_, at) => from + ((to - from) * (at + 1)) / (rows + 1));
}

/** A room whose parents lead back to itself gets the main graph as its parent. */
function cutCircles(rooms: Room[]): void {
  for (let room = 1; room < rooms.length; room++) {
    const seen = new Set<number>([room]);
    for (let up = rooms[room].parent; up >= 0; up = rooms[up].parent) {
      if (seen.has(up)) {
        rooms[room].parent = 0;
        break;
      }
      seen.add(up);
    }
  }
}

function asOverlay(value: unknown, models: Model[]): Overlay {
  const raw = object(value);
  const model = Math.max(0, index(raw.model, models.length));
  const figures = list(raw.figures);
  const texts = strings(raw.texts);
  const kept = list(raw.nodes).map((node) => index(node, models[model].nodes.op.length));
  const rows = kept
    .map((node, at) => ({ node, figure: asFigure(figures[at]), text: texts[at] ?? "" }))
    .filter((row) => row.node >= 0);
  return {
    title: string(raw.title) || "overlay",
    model,
    unit: string(raw.unit),
    scale: raw.scale === "log" || raw.scale === "classes" ? raw.scale : "linear",
    classes: strings(raw.classes),
    worst: raw.worst === "low" ? "low" : "high",
    nodes: rows.map((row) => row.node),
    figures: rows.map((row) => row.figure),
    texts: rows.map((row) => asHere(row.text)),
    from: string(raw.from),
  };
}

function asFigure(value: unknown): Overlay["figures"][number] {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  return value === "inf" || value === "-inf" ? value : "nan";
}

function asDifference(value: unknown, models: Model[]): Difference | null {
  if (!value || models.length < 2) return null;
  const raw = object(value);
  const [first, second] = [models[0].nodes.op.length, models[1].nodes.op.length];
  const changes: Difference["changes"] = {};
  for (const [pair, lines] of Object.entries(object(raw.changes))) changes[Number(pair)] = strings(lines).map(asHere);
  return {
    pairs: list(raw.pairs).map((pair) => {
      const [a, b, state] = list(pair);
      return [index(a, first), index(b, second), integer(state, 0)];
    }),
    removed: indices(raw.removed, first),
    added: indices(raw.added, second),
    changes,
    regions: list(raw.regions).map((region) => {
      const [ours, theirs] = list(region);
      return [indices(ours, first), indices(theirs, second)];
    }),
    rounded: indices(raw.rounded, list(raw.pairs).length),
    stored: [indices(list(raw.stored)[0], first), indices(list(raw.stored)[1], second)],
  };
}

function asProgram(value: unknown, model: Model): Program | null {
  const raw = object(value);
  const lines = list(raw.lines).map((line) => {
    const known = object(line);
    return {
      name: string(known.name),
      text: string(known.text),
      source: index(known.source, model.sources.length),
      module: index(known.module, model.modules.length),
      nodes: indices(known.nodes, model.nodes.op.length),
    };
  });
  return lines.length ? { from: string(raw.from), lines } : null;
}

const object = (value: unknown): Raw =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Raw) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const string = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
const strings = (value: unknown): string[] => list(value).map(string);
const finite = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const indices = (value: unknown, length: number): number[] =>
  list(value)
    .map((node) => index(node, length))
    .filter((node) => node >= 0);
const integer = (value: unknown, otherwise: number): number =>
  Number.isInteger(value) ? (value as number) : otherwise;
const index = (value: unknown, length: number): number => {
  const at = integer(value, -1);
  return at >= 0 && at < length ? at : -1;
};
