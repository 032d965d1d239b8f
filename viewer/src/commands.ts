/** Commands that go on from a selection, quoted for a POSIX shell. */

import type { Graph } from "./graph";

export interface Offer {
  title: string;
  command: string;
  /** A remark to read before running the command; "" if there is none. */
  note: string;
}

/** A word as a POSIX shell reads it back. Words of harmless letters stay as they are. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) && !word.startsWith("=") ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** An argument that isn't read as an option, such as a file called "-o". */
function path(word: string): string {
  return quoted(word.startsWith("-") ? `./${word}` : word);
}

/** A tensor as `--from` and `--to` take it; null if it can't be named so. A name that begins as a table does is named by its node. */
function tensor(graph: Graph, option: string, value: number): string | null {
  const { values, nodes } = graph.model;
  const name = values.name[value];
  if (!name) return null;
  if (!/^\s*\{/.test(name)) return name.startsWith("-") ? quoted(`${option}=${name}`) : `${option} ${quoted(name)}`;
  const producer = values.producer[value];
  if (producer < 0 || !nodes.name[producer]) return null;
  return `${option} ${quoted(`{ producer = ${JSON.stringify(nodes.name[producer])}, output = ${nodes.outputs[producer].indexOf(value)} }`)}`;
}

export interface Boundary {
  from: number[];
  to: number[];
}

/**
 * Returns the tensors that a set of nodes reads from outside, and those that it gives to the outside. Constants are part
 * of the set, and so are the nodes in its branches and bodies: what these read from outside counts, too.
 */
export function boundary(graph: Graph, nodes: number[]): Boundary {
  const { inputs, outputs } = graph.model.nodes;
  const { kind, producer } = graph.model.values;
  const inside = new Set(nodes);
  const from = new Set<number>();
  const to = new Set<number>();
  const isOutside = (reader: number): boolean => !inside.has(reader) && !graph.isHeld(reader, inside);
  for (const node of nodes) {
    for (const value of [...inputs[node], ...graph.captured(node)])
      if (value >= 0 && kind[value] !== 3 && !inside.has(producer[value])) from.add(value);
    for (const value of outputs[node]) {
      if (value >= 0 && (kind[value] === 2 || graph.readers(value).some(isOutside)))
        to.add(value);
    }
  }
  return { from: [...from], to: [...to] };
}

/** So many tensors fit into a command that a person reads. */
const MOST_TENSORS = 60;

/** Returns commands for nodes of one model; with `other`, the second of two models, also commands for both. */
export function offers(graph: Graph, nodes: number[], other?: Graph): Offer[] {
  if (!nodes.length) return [];
  const chosen = new Set(nodes);
  const outer = nodes.filter((node) => !graph.isHeld(node, chosen));
  if (outer.some((node) => graph.bodyOf(node) >= 0)) {
    return [
      {
        title: "Cut out",
        command: "",
        note: "A part of a branch, a loop or a function cannot be cut out by itself: select the node that holds it.",
      },
    ];
  }
  const { from, to } = boundary(graph, outer);
  if (from.length + to.length > MOST_TENSORS) {
    return [
      {
        title: "Cut out",
        command: "",
        note: `This part has ${from.length + to.length} tensors at its border: select fewer nodes.`,
      },
    ];
  }
  const words = [
    ...from.map((value) => tensor(graph, "--from", value)),
    ...to.map((value) => tensor(graph, "--to", value)),
  ];
  if (words.includes(null))
    return [
      {
        title: "Cut out",
        command: "",
        note: "A tensor at the border of this part has a name that no command can be given.",
      },
    ];
  const untyped = [...from, ...to].find((value) => !graph.typeText(value));
  if (untyped !== undefined)
    return [
      {
        title: "Cut out",
        command: "",
        note: `The type of ${graph.valueName(untyped)}, at the border of this part, is not known: a part's inputs and outputs have types.`,
      },
    ];
  const extract = `onnxsmith extract ${path(graph.model.path)} ${words.join(" ")} -o part.onnx`;
  return [
    { title: "Cut out this part", command: extract, note: "" },
    {
      title: "Compare it on two runtimes",
      command: `${extract} && onnxsmith compare part.onnx@reference part.onnx@onnxruntime --per-layer`,
      note: "",
    },
    {
      title: "Reduce a failure in it",
      command: `${extract} && onnxsmith reduce part.onnx -o reduced --check 'differs reference onnxruntime'`,
      note: "Give --check the failure that you see; `onnxsmith reduce --help` lists them.",
    },
    ...(other ? [inBoth(graph, other, [...from, ...to], words.join(" "))] : []),
  ];
}

/** Compares a part of two models, if the other has the tensors at its border by the same names. */
function inBoth(graph: Graph, other: Graph, border: number[], words: string): Offer {
  const title = "Compare it in both models";
  const there = new Set(other.model.values.name);
  const lacking = border.filter((value) => !there.has(graph.model.values.name[value]));
  if (lacking.length)
    return {
      title,
      command: "",
      note: `${other.model.name} has no tensor ${graph.model.values.name[lacking[0]]}: select a part whose border both have.`,
    };
  const [first, second] = graph.index ? [other, graph] : [graph, other];
  return {
    title,
    command: `onnxsmith compare ${path(first.model.path)} ${path(second.model.path)} ${words} --per-layer`,
    note: "",
  };
}

/** Commands for two models. */
export function offersForTwo(first: Graph, second: Graph): Offer[] {
  const [a, b] = [path(first.model.path), path(second.model.path)];
  return [
    { title: "List the differences", command: `onnxsmith diff ${a} ${b}`, note: "" },
    { title: "Compare what they compute", command: `onnxsmith compare ${a} ${b} --per-layer`, note: "" },
  ];
}
