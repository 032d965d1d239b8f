/** The tooltip of an item: its name, and the same words that the card, the lists and the inspector have for its colour. */

import type { App } from "./app";
import { STATE_WORDS } from "./differences";
import type { Chosen, Side } from "./side";

export function hoverText(app: App, side: Side, chosen: Chosen): string {
  return [app.nameOf(side, chosen), ...colourLines(app, side, chosen)].join("\n");
}

function colourLines(app: App, side: Side, { kind, ref }: Chosen): string[] {
  const model = side.graph.index;
  const { colour } = app;
  if (colour === "difference" && app.differences && kind === "node") {
    const change = app.differences.changes[app.differences.change(model, ref)];
    return change ? [STATE_WORDS[change.state], ...change.lines] : [];
  }
  const figures = typeof colour === "number" ? app.overlays[colour] : undefined;
  if (!figures || figures.overlay.model !== model) return [];
  const { title } = figures.overlay;
  if (kind === "node") {
    const words = [figures.writeNode(ref), figures.text(ref)].filter(Boolean);
    return words.length ? [`${title}: ${words[0]}`, ...words.slice(1)] : [];
  }
  const inside = kind === "room" ? figures.room(ref) : undefined;
  return inside ? [`${title}: ${figures.writeRoom(inside)}`] : [];
}
