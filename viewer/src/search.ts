/** Finds nodes, values and rooms by their words. */

import type { Graph } from "./graph";
import { KINDS, matcher, parse, type Kind, type Term } from "./query";
import type { Chosen } from "./side";

export interface Result {
  kind: Kind;
  chosen: Chosen;
  /** The text that matched. */
  text: string;
}

/** All results by kind: what has all words of the query. A query without words finds nothing. */
export function search(graph: Graph, text: string): Map<Kind, Result[]> {
  const terms = parse(text);
  if (terms.length < 2) return terms.length ? resultsOf(graph, terms[0]) : new Map();
  return allOf(terms.map((term) => withNodes(graph, term, resultsOf(graph, term))));
}

/** The results of one word. */
function resultsOf(graph: Graph, term: Term): Map<Kind, Result[]> {
  const results = new Map<Kind, Result[]>();
  for (const kind of KINDS) {
    // Readers are only looked for when asked: else each tensor that is found would bring its readers along.
    if (term.kind ? term.kind !== kind : kind === "reader") continue;
    const found = FINDERS[kind](graph, matcher(term, kind), term.words);
    if (found.length) results.set(kind, found);
  }
  return results;
}

/** Beside other words, stored tensors stand for the nodes that read them, and levels for the nodes in them: "conv 3x3". */
function withNodes(graph: Graph, term: Term, results: Map<Kind, Result[]>): Map<Kind, Result[]> {
  for (const kind of ["tensor", "type"] as const) {
    const stored = (results.get(kind) ?? []).filter(({ chosen }) => chosen.kind === "value" && graph.model.values.kind[chosen.ref] === 3);
    for (const { chosen, text } of stored)
      for (const node of graph.readers(chosen.ref)) results.get(kind)!.push({ kind, chosen: { kind: "node", ref: node }, text });
  }
  if (term.kind === null || term.kind === "room") {
    const inside = FINDERS.inside(graph, matcher(term, "room"), term.words);
    if (inside.length) results.set("room", [...(results.get("room") ?? []), ...inside]);
  }
  return results;
}

/** Returns the results that all words find, in the order and the kinds of the first word. */
function allOf(found: Map<Kind, Result[]>[]): Map<Kind, Result[]> {
  const key = ({ chosen }: Result): string => `${chosen.kind} ${chosen.ref}`;
  const others = found.slice(1).map((results) => {
    const texts = new Map<string, string>();
    for (const list of results.values()) for (const one of list) if (!texts.has(key(one))) texts.set(key(one), one.text);
    return texts;
  });
  const all = new Map<Kind, Result[]>();
  for (const [kind, list] of found[0]) {
    const seen = new Set<string>();
    const held = list.filter((one) => !seen.has(key(one)) && seen.add(key(one)) && others.every((texts) => texts.has(key(one))));
    const results = held.map((one) => ({
      ...one,
      text: [...new Set([one.text, ...others.map((texts) => texts.get(key(one))!)])].join(" · "),
    }));
    if (results.length) all.set(kind, results);
  }
  return all;
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

/** Nodes by their attributes, those that have their default value included. Each pair is looked at once. */
const attributes: Finder = (graph, match) => {
  const known = new Map<string, boolean>();
  const has = (text: string): boolean => {
    if (!known.has(text)) known.set(text, match(text));
    return known.get(text)!;
  };
  const found: Result[] = [];
  graph.model.nodes.attributes.forEach((rows, node) => {
    const texts = rows.map(([name, value]) => `${name}=${value}`).filter(has);
    if (texts.length) found.push({ kind: "attribute", chosen: { kind: "node", ref: node }, text: texts.join("  ") });
  });
  return found;
};

const FINDERS: Record<Kind | "inside", Finder> = {
  attribute: attributes,
  /** Nodes by the level that holds them. */
  inside: byShared(
    "room",
    (graph) => graph.model.nodes.room.map((room) => room || -1),
    (graph) => graph.model.rooms.map((room) => room.path || room.title),
  ),
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
    values(graph, "tensor", (value) => {
      const name = graph.model.values.name[value];
      if (match(name)) return name;
      const alias = graph.model.constants[value]?.aliases?.find(match);
      return alias ? `${name} (${alias})` : "";
    }),
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
