/** What is pointed out besides the selection: search results, lines of the program, partners in the other model. */

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

  /** Selects in the other model the partners of what is selected. */
  pairSelections(): void {
    const { app } = this;
    const other = app.sides[1 - app.active];
    if (!other) return;
    other.selection = app.side.selection.flatMap((one): Chosen[] => {
      if (one.kind === "value" || !app.differences) return [];
      const ref =
        one.kind === "node"
          ? app.differences.partner(app.active, one.ref)
          : app.differences.partnerRoom(app.active, one.ref);
      return ref < 0 ? [] : [{ kind: one.kind, ref }];
    });
  }

  private redraw(): void {
    this.app.sides.forEach((side) => side.remark());
    this.app.panes.forEach((pane) => pane.redraw());
  }
}
