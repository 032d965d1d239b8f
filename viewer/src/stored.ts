/** The stored tensors of a model: their sizes, and the nodes that read them. No elements of the page here. */

import type { Graph } from "./graph";

export interface Stored {
  value: number;
  bytes: number;
  /** Such as "float32[64, 3]"; "" if unknown. */
  type: string;
  dtype: string;
  /** The number of elements; -1 if unknown. */
  elements: number;
  /** Nodes that read it, those in whose bodies it is read included. */
  readers: number[];
  /** The text that a filter searches, in small letters. */
  words: string;
}

export type Order = "bytes" | "name" | "dtype" | "shape" | "readers";

export function storedTensors(graph: Graph): Stored[] {
  const { values, constants } = graph.model;
  return values.kind.flatMap((kind, value) => (kind === 3 && constants[value] ? [stored(graph, value)] : []));
}

function stored(graph: Graph, value: number): Stored {
  const type = graph.typeText(value);
  const parts = graph.type(value);
  const dims = parts?.dims?.map(({ text }) => Number(text));
  const readers = graph.readers(value);
  const names = readers.map((node) => `${graph.op(node).type} ${graph.nodeName(node)}`);
  const { bytes, file, form, aliases } = graph.model.constants[value];
  return {
    value,
    bytes,
    type,
    dtype: parts?.dtype ?? "",
    elements: dims ? dims.reduce((all, dim) => all * dim, 1) : -1,
    readers,
    words: [graph.valueName(value), type, type.replace(/\s+/g, ""), dims?.join("x") ?? "", file, form ?? "", ...(aliases ?? []), ...names].join("\n").toLowerCase(),
  };
}

/** Whether a tensor has all words of a filter; in shapes ×, x and commas are alike. */
export function fits(one: Stored, filter: string): boolean {
  const words = filter.toLowerCase().replace(/,\s+/g, ",").split(/\s+/);
  return words.every((word) => one.words.includes(word) || one.words.includes(word.replace(/×/g, "x")));
}

export function totalBytes(all: Stored[]): number {
  return all.reduce((sum, one) => sum + one.bytes, 0);
}

/** Negative if `a` comes first: the largest, the most read, else by the alphabet. Equal ones keep the order of the file. */
export function compared(order: Order, a: Stored, b: Stored): number {
  const name = (one: Stored): string => one.words.slice(0, one.words.indexOf("\n"));
  const byText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
  if (order === "bytes") return b.bytes - a.bytes || a.value - b.value;
  if (order === "readers") return b.readers.length - a.readers.length || b.bytes - a.bytes;
  if (order === "shape") return b.elements - a.elements || byText(a.type, b.type);
  return order === "dtype" ? byText(a.dtype, b.dtype) || b.bytes - a.bytes : byText(name(a), name(b)) || a.value - b.value;
}
