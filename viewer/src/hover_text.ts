/** The tooltip of an item: its name, and the same words that the card, the lists and the inspector have for its colour. */

import type { App } from "./app";
import type { Chosen, Side } from "./side";

export function hoverText(app: App, side: Side, chosen: Chosen): string {
  return [app.nameOf(side, chosen), ...colourLines(app, side, chosen)].join("\n");
}

function colourLines(app: App, side: Side, { kind, ref }: Chosen): string[] {
  const model = side.graph.index;
  const { colour } = app;
  if (colour === "difference" && app.differences && kind === "node") return app.differences.words(model, ref);
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
