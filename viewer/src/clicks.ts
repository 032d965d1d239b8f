/** Handles clicks on the picture: selects, opens, shows alone, or follows the end of an edge. */

import type { App } from "./app";
import { enterSelected } from "./levels";
import type { Hit } from "./picture";
import type { Chosen } from "./side";

export function clicked(app: App, model: number, hit: Hit | null, how: { shift: boolean; double: boolean }): void {
  const side = app.sides[model];
  const chosen = hit && side.chosenAt(hit);
  if (!hit || !chosen) return app.choose(model, null);
  const { kind } = side.graph.model.rooms[hit.frame.room].items;
  if (hit.part === "enter" && chosen.kind === "node") {
    app.choose(model, chosen);
    return enterSelected(app);
  }
  if (hit.part === "enter") return app.enter(model, chosen.ref);
  if (chosen.kind === "room" && (hit.part === "toggle" || how.double)) return app.toggle(model, chosen.ref);
  if (hit.item >= 0 && kind[hit.item] === 4) return followStub(app, model, hit, chosen);
  if (how.double && chosen.kind === "node") return enterSelected(app);
  app.choose(model, chosen, { add: how.shift });
}

/** A stub at the end of an edge leads to a reader; a stub at its beginning leads to the producer of the value. */
function followStub(app: App, model: number, hit: Hit, chosen: Chosen): void {
  const { graph } = app.sides[model];
  const { start } = hit.frame.rows.leaving;
  const isEnd = start[hit.item] === start[hit.item + 1];
  const node = isEnd ? graph.readers(chosen.ref)[0] : graph.model.values.producer[chosen.ref];
  app.jump(model, node >= 0 ? { kind: "node", ref: node } : chosen);
}
