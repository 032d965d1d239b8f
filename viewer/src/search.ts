/** Finds nodes, values and rooms by their words. */

import type { Graph } from "./graph";
import type { Chosen } from "./side";

export type Kind = "name" | "operator" | "type" | "module" | "source" | "tensor" | "room" | "reader";
export const KINDS: Kind[] = ["name", "operator", "tensor", "type", "module", "source", "room", "reader"];

/** How a kind is written before a query: "op:conv" looks at operators only. */
const PREFIXES: Record<string, Kind> = {
  name: "name",
  op: "operator",
  operator: "operator",
  type: "type",
  shape: "type",
  dtype: "type",
  module: "module",
  source: "source",
  line: "source",
  tensor: "tensor",
  value: "tensor",
  room: "room",
  level: "room",
  reads: "reader",
  readers: "reader",
};

export interface Result {
  kind: Kind;
  chosen: Chosen;
  /** What matched. */
  text: string;
}

export interface Query {
  kind: Kind | null;
  words: string;
}

export function parse(text: string): Query {
  const found = /^\s*(\w+):\s*(.*)$/.exec(text);
  const kind = found ? PREFIXES[found[1].toLowerCase()] : undefined;
  // "a::b" is a part of a name, not a prefix.
  if (found && kind && !found[2].startsWith(":")) return { kind, words: found[2].trim().toLowerCase() };
  return { kind: null, words: text.trim().toLowerCase() };
}

/** All results by kind. A query without words finds nothing. */
export function search(graph: Graph, text: string): Map<Kind, Result[]> {
  const query = parse(text);
  const results = new Map<Kind, Result[]>();
  if (!query.words) return results;
  for (const kind of KINDS) {
    // Readers are only looked for when asked: else each tensor that is found would bring its readers along.
    if (query.kind ? query.kind !== kind : kind === "reader") continue;
    const found = FINDERS[kind](graph, matcher(query.words, kind), query.words);
    if (found.length) results.set(kind, found);
  }
  return results;
}

/** Shapes match without regard to spaces, and "3x224" finds "3, 224". */
function matcher(words: string, kind: Kind): (text: string) => boolean {
  if (kind !== "type") return (text) => text.toLowerCase().includes(words);
  const plain = (text: string): string => text.toLowerCase().replace(/\s+/g, "").replace(/×/g, ",");
  const wanted = plain(words).replace(/(\w)x(?=\d)/g, "$1,");
  const exact = plain(words);
  return (text) => plain(text).includes(wanted) || plain(text).includes(exact);
}

type Match = (text: string) => boolean;
type Finder = (graph: Graph, match: Match, words: string) => Result[];

/** Nodes whose entry in a list of shared things matches: the list is searched once, not once a node. */
function byShared(kind: Kind, column: (graph: Graph) => number[], texts: (graph: Graph) => string[]): Finder {
  return (graph, match) => {
    const all = texts(graph);
    const hit = all.map(match);
    const found: Result[] = [];
    column(graph).forEach(
      (at, node) => at >= 0 && hit[at] && found.push({ kind, chosen: { kind: "node", ref: node }, text: all[at] }),
    );
    return found;
  };
}

/** The nodes that read a tensor of this name; where no tensor is called so, those that read one whose name has the words in it. */
const readers: Finder = (graph, match, words) => {
  const matching = graph.model.values.name.flatMap((name, value) => (name && match(name) ? [value] : []));
  const exact = matching.filter((value) => graph.model.values.name[value].toLowerCase() === words);
  const found = new Map<number, string>();
  for (const value of exact.length ? exact : matching)
    for (const node of graph.readers(value)) if (!found.has(node)) found.set(node, `reads ${graph.valueName(value)}`);
  return [...found].map(([node, text]) => ({ kind: "reader", chosen: { kind: "node", ref: node }, text }));
};

const FINDERS: Record<Kind, Finder> = {
  reader: readers,
  name: (graph, match) => {
    const found: Result[] = [];
    graph.model.nodes.name.forEach(
      (name, node) =>
        name && match(name) && found.push({ kind: "name", chosen: { kind: "node", ref: node }, text: name }),
    );
    return found;
  },
  operator: byShared(
    "operator",
    (graph) => graph.model.nodes.op,
    (graph) => graph.model.ops.map((op) => (op.domain ? `${op.domain}::${op.type}` : op.type)),
  ),
  module: byShared(
    "module",
    (graph) => graph.model.nodes.module,
    (graph) => graph.model.modules.map((one) => `${one.path} ${one.type}`.trim()),
  ),
  source: byShared(
    "source",
    (graph) => graph.model.nodes.source,
    (graph) => graph.model.sources.map((one) => `${one.file}:${one.line}  ${one.text}`),
  ),
  tensor: (graph, match) =>
    values(graph, "tensor", (value) => (match(graph.model.values.name[value]) ? graph.model.values.name[value] : "")),
  type: (graph, match) => {
    const hit = graph.model.types.map(match);
    return values(graph, "type", (value) => (hit[graph.model.values.type[value]] ? graph.typeText(value) : ""));
  },
  room: (graph, match) => {
    const found: Result[] = [];
    graph.model.rooms.forEach((room, at) => {
      if (at > 0 && (match(room.title) || match(room.path)))
        found.push({ kind: "room", chosen: { kind: "room", ref: at }, text: room.title });
    });
    return found;
  },
};

/** Results for values are nodes where one computes it, so that they can be seen; else the value itself. */
function values(graph: Graph, kind: Kind, text: (value: number) => string): Result[] {
  const { producer } = graph.model.values;
  const found: Result[] = [];
  for (let value = 0; value < producer.length; value++) {
    const matched = text(value);
    if (matched)
      found.push({
        kind,
        chosen: producer[value] >= 0 ? { kind: "node", ref: producer[value] } : { kind: "value", ref: value },
        text: matched,
      });
  }
  return found;
}
