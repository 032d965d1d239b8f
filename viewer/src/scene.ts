/**
 * The scene: all that the page knows of a model. `src/onnxsmith/viewer` writes it as JSON, the page draws it.
 *
 * Nodes, values and items are held in columns, lists of equal length: a scene of 20,000 nodes stays a few megabytes.
 * Indices point into those lists; -1 stands for nothing. JSON has no NaN: such numbers are the strings "nan", "inf", "-inf".
 */

export type Figure = number | "nan" | "inf" | "-inf";

export interface Scene {
  format: 1;
  headline: string;
  /** Notes on parts that are not shown, or shown only in part, and why. */
  notes: string[];
  /** One model, or two for a difference: the first is the older one. */
  models: Model[];
  overlays: Overlay[];
  difference: Difference | null;
  program: Program | null;
  /** Lines that stand above the picture, such as: a report is of another model. Pages before this field have none. */
  warnings?: string[];
  /** The address that the page opens at if its own has none, such as "#encoder.layer.3"; "" or absent: the main graph. */
  start?: string;
}

export interface Model {
  /** The name of the file. */
  name: string;
  /** Its path as given on the command line, for the commands that the page offers. */
  path: string;
  /** SHA-256 of the file, in hexadecimal digits. */
  hash: string;
  /** Facts such as ["opset", "20"], in the order in which they are shown. */
  facts: [string, string][];
  ops: Op[];
  /** Types such as "float32[batch, 3, 224]"; "" if unknown. */
  types: string[];
  /** Torch modules and other scopes by path, such as "encoder.layer.3". */
  modules: Module[];
  /** Lines of source code. */
  sources: Source[];
  nodes: Nodes;
  values: Values;
  /** Constants by index of their value. */
  constants: Record<number, Constant>;
  /** Outer values that the bodies of a node read, by index of the node; pages before this field have none. */
  captured?: Record<number, number[]>;
  /** Doc strings by index of the node; pages before this field have none. */
  docs?: Record<number, string>;
  /** Room 0 is the main graph. */
  rooms: Room[];
}

export interface Op {
  type: string;
  domain: string;
  /** The colour: "product", "activation", "normalization", "shape", "elementwise", "reduction", "quantizer", "control", "constant", "other". */
  family: string;
  /** The address of the operator's page, or "". */
  doc: string;
  /** The formal names of its inputs and outputs; that of a variadic one, the last, ends in "…". Absent if unknown. */
  inputs?: string[];
  outputs?: string[];
}

export interface Module {
  path: string;
  /** The class, such as "torch.nn.modules.conv.Conv2d"; "" if unknown. */
  type: string;
}

export interface Source {
  file: string;
  line: number;
  text: string;
}

export interface Nodes {
  name: string[];
  op: number[];
  /** The room that shows the node as an item. */
  room: number[];
  module: number[];
  source: number[];
  /** Values that it reads; -1 for an operand that is left out. */
  inputs: number[][];
  outputs: number[][];
  /** Name, value as text, and 1 if it is the default of the operator and not in the file. */
  attributes: [string, string, 0 | 1][][];
  /** Rooms of branches, bodies, or of the function that the node calls: [label, room]. */
  bodies: [string, number][][];
}

export interface Values {
  name: string[];
  type: number[];
  /** The node that computes it; -1 for graph inputs and constants. */
  producer: number[];
  /** 0 computed, 1 graph input, 2 graph output, 3 initializer or constant. */
  kind: number[];
}

export interface Constant {
  bytes: number;
  /** The file that holds it, if it is not the model's. */
  file: string;
  /** min, max, mean, std, zeros (share), nan (count): where the values were read. */
  figures: Record<string, Figure> | null;
  /** Counts of equal intervals between min and max; [] where the values were not read. */
  histogram: number[];
  /** All values of a small constant as text, such as "[0, -1, 64]"; "" for larger ones. */
  text: string;
  /**
   * Further names, of the torch parameters that an exporter computed it from ("layers.0.att.q.weight" of "val_21");
   * [] for most. Pages before this field have none.
   */
  aliases?: string[];
  /** "sparse, 3 of 12 values" of a sparse tensor, whose `bytes` are then those that it takes; "" or absent for others. */
  form?: string;
}

/**
 * One level of the model: a graph, a function, a branch, a torch module, or a block that was found by its structure.
 * Its items are laid out in rows: all edges point down, from a row to one below.
 */
export interface Room {
  title: string;
  kind: "graph" | "function" | "branch" | "module" | "block";
  /** What comes after # in a link, such as "encoder.layer.3". Unique. */
  path: string;
  parent: number;
  /** Nodes in it, and in the rooms in it. */
  count: number;
  /** How many rooms of the same structure the parent has, this one included ("one of 12 alike"). */
  repeats: number;
  items: Items;
  edges: Edges;
}

export interface Items {
  /** 0 node, 1 room, 2 input of the room, 3 output of the room, 4 stub: a named end of an edge that is not drawn. */
  kind: (0 | 1 | 2 | 3 | 4)[];
  /** The node, the room, or the value (for kinds 2, 3 and 4). */
  ref: number[];
  /** Rows are numbered from the top, 0; the position is the middle of the item, in units of the widest item. */
  row: number[];
  x: number[];
}

/** Edges between items. An edge that crosses rows has a bend in each: `bends` holds the x of each of these rows. */
export interface Edges {
  from: number[];
  to: number[];
  value: number[];
  bends: number[][];
}

/** A figure for each node out of a report: error, time, memory, precision, the verdict of a target. */
export interface Overlay {
  title: string;
  model: number;
  /** "s", "bytes", "MACs", "" … */
  unit: string;
  /** "linear" or "log" colours; "classes": values are indices into `classes`. */
  scale: "linear" | "log" | "classes";
  classes: string[];
  /** Which end is bad: it's drawn strongest, and "next worst" begins there. */
  worst: "high" | "low";
  /** The figure of each node, -1 as index is not used: nodes without a figure are left out. */
  nodes: number[];
  figures: Figure[];
  /** What to say about each of them, as one line. */
  texts: string[];
  /** Where it comes from: the command and the file of the report. */
  from: string;
}

export interface Difference {
  /** Pairs of nodes: [of the first model, of the second, state]. States: 0 equal, 1 attributes, 2 weights, 3 both, 4 operator, 5 wiring or type. */
  pairs: [number, number, number][];
  /** Nodes of the first model without a partner, and of the second. */
  removed: number[];
  added: number[];
  /** Lines of what changed, by index into `pairs`. */
  changes: Record<number, string[]>;
  /**
   * Removed and added nodes that compute the same, [of the first model, of the second]; pages before this field have none.
   * Where a model has none of its own, nodes of pairs that compute the same stand there.
   */
  regions?: [number[], number[]][];
  /** Pairs that are equal up to the rounding of their weights, by index into `pairs`; pages before this field have none. */
  rounded?: number[];
  /**
   * Removed nodes and added nodes that compute only from stored tensors, such as copies of weights; they are in `removed`
   * and `added`, and in no region. Pages before this field have none.
   */
  stored?: [number[], number[]];
}

/** The captured program: one line for each operation, with the nodes that came from it. */
export interface Program {
  from: string;
  lines: { name: string; text: string; source: number; module: number; nodes: number[] }[];
}
