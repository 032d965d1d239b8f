/** Highlights besides the selection: search results, lines of the program, partners in the other model. */

import type { App } from "./app";
import type { Chosen } from "./side";

export class Highlights {
  constructor(private readonly app: App) {}

  found(found: Chosen[][]): void {
    this.app.sides.forEach((side, model) => (side.found = found[model]));
    this.redraw();
  }

  point(nodes: ReadonlySet<number>): void {
    this.app.sides[0].pointed = nodes;
    this.redraw();
  }

  /** Selects in the other model the partners of what is selected, and what computes the same region. */
  pairSelections(): void {
    const { app } = this;
    const other = app.sides[1 - app.active];
    if (!other) return;
    const { differences } = app;
    const nodes = new Set<number>();
    const rooms = new Set<number>();
    for (const { kind, ref } of differences ? app.side.selection : []) {
      if (kind === "node") for (const node of differences!.counterparts(app.active, ref)) nodes.add(node);
      if (kind === "room") rooms.add(differences!.partnerRoom(app.active, ref));
    }
    rooms.delete(-1);
    other.selection = [
      ...[...nodes].map((ref): Chosen => ({ kind: "node", ref })),
      ...[...rooms].map((ref): Chosen => ({ kind: "room", ref })),
    ];
  }

  private redraw(): void {
    this.app.sides.forEach((side) => side.remark());
    this.app.panes.forEach((pane) => pane.redraw());
  }
}
