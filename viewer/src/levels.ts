/** Opens, enters and leaves the room that is selected. */

import type { App } from "./app";
import { followEdge } from "./edges";
import { outside } from "./overlays";

const NOTHING = "Nothing is selected: r selects the first item, o lists all";

/** Shows the room around the one that is shown. */
export function leave(app: App): void {
  const { graph, room } = app.side;
  if (room === 0) return app.refuse("This is the main graph");
  app.enter(app.active, Math.max(0, outside(graph, room)));
}

/** Opens a selected room or closes it, shows the body of a selected node, goes to the producer of a selected value. */
export function toggleSelected(app: App): void {
  const { side } = app;
  const last = side.selection.at(-1);
  const canOpen = last?.kind === "room" && last.ref !== side.room && side.graph.itemOfRoom[last.ref] >= 0;
  if (canOpen) app.toggle(app.active, last.ref);
  else if (last?.kind === "node") enterSelected(app);
  else if (last?.kind === "value") followEdge(app, "up");
  else app.refuse(last ? "This level is shown already" : NOTHING);
}

/** Shows a selected room, or the first body of a selected node, alone. */
export function enterSelected(app: App): void {
  const last = app.side.selection.at(-1);
  if (last?.kind === "room") app.enter(app.active, last.ref);
  const bodies = last?.kind === "node" ? app.side.graph.model.nodes.bodies[last.ref] : [];
  if (bodies.length) app.enter(app.active, bodies[0][1]);
  else if (last?.kind !== "room") app.refuse(last ? "Nothing is inside: only levels and nodes with a body can be opened" : NOTHING);
}
