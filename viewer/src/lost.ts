/** Describes the names in an address that the page does not have, with the nearest existing names. */

import type { Graph } from "./graph";
import { chosenByLink } from "./naming";
import { nearNames } from "./near_names";
import type { Chosen } from "./side";
import type { PlaceInUrl } from "./url";

/** A name that was not found, and what is like it: each with the part of the address that leads there. */
export interface Lost {
  text: string;
  near: { text: string; change: Partial<PlaceInUrl> }[];
}

/** The room that a path names; else the innermost one around it that exists, 0 for the main graph. */
export function nearestRoom(graph: Graph, path: string): { room: number; exact: boolean } {
  for (let end = path.length; end > 0; end = Math.max(path.lastIndexOf(".", end - 1), path.lastIndexOf("/", end - 1))) {
    const room = graph.roomByPath.get(path.slice(0, end));
    if (room !== undefined) return { room, exact: end === path.length };
  }
  return { room: 0, exact: path === "" };
}

/** What is selected by an address: its `at`, or a node whose name stands where a level is named. */
export function chosenIn(graph: Graph, place: PlaceInUrl): Chosen | null {
  return chosenByLink(graph, place.at) ?? (graph.roomByPath.has(place.room) ? null : chosenByLink(graph, `node:${place.room}`));
}

const WORDS: Record<string, string> = { room: "level", node: "node", tensor: "tensor", "node-number": "node", "tensor-number": "tensor" };

/** Returns all names in an address that the page does not have. `colours` are the titles of the possible colourings. */
export function lostIn(place: PlaceInUrl, graphs: Graph[], colours: string[]): Lost[] {
  const graph = graphs[place.model];
  if (!graph) return [{ text: "There is no second model", near: [] }, ...lostIn({ ...place, model: 0 }, graphs, colours)];
  return [...lostLevel(place, graph), ...lostOpen(place, graph), ...lostThing(place, graph), ...lostColour(place, colours)];
}

function lostLevel(place: PlaceInUrl, graph: Graph): Lost[] {
  const { room, exact } = nearestRoom(graph, place.room);
  if (!place.room || exact || chosenByLink(graph, `node:${place.room}`)) return [];
  const shown = room ? graph.model.rooms[room].path : "the main graph";
  return [
    {
      text: `No level or node is called ${place.room}; ${shown} is shown`,
      near: nearNames(place.room, graph.roomByPath.keys()).map((text) => ({ text, change: { room: text, camera: null } })),
    },
  ];
}

function lostOpen({ open }: PlaceInUrl, graph: Graph): Lost[] {
  const lost = open.filter((path) => path !== "*" && !graph.roomByPath.has(path));
  if (!lost.length) return [];
  const more = lost.length > 1 ? ` and ${lost.length - 1} more` : "";
  return [{ text: `Levels to open are not here: ${lost[0]}${more}`, near: [] }];
}

function lostThing(place: PlaceInUrl, graph: Graph): Lost[] {
  if (!place.at || chosenByLink(graph, place.at)) return [];
  const [, way, name] = /^([a-z-]+):(.*)$/s.exec(place.at) ?? [];
  if (!WORDS[way]) return [{ text: `“${place.at}” is not of the form node:…, tensor:… or room:…`, near: [] }];
  const names = { room: graph.roomByPath.keys(), node: graph.model.nodes.name, tensor: graph.model.values.name }[way] ?? [];
  return [
    {
      text: `No ${WORDS[way]} ${way.endsWith("number") ? "has the number" : "is called"} ${name}`,
      near: nearNames(name, names).map((text) => ({ text, change: { at: `${way}:${text}`, camera: null } })),
    },
  ];
}

function lostColour({ colour }: PlaceInUrl, colours: string[]): Lost[] {
  if (!colour || colours.includes(colour)) return [];
  return [
    {
      text: `No colours or report are called ${colour}`,
      near: nearNames(colour, colours).map((text) => ({ text, change: { colour: text } })),
    },
  ];
}
