/** Gives items their looks: by the family of their operator, by an overlay, or by their changes. */

import { familyPaints, filled, mix, paintOf, type Paint, type Palette } from "./colours";
import { GROUP_SIGNS, GROUPS, groupOf, type Differences, type Group, type RoomChanges } from "./differences";
import type { Graph } from "./graph";
import type { OverlayFigures } from "./overlays";
import { scaleOf, type Scale } from "./scales";
import { grouped } from "./words";

export interface Sign {
  text: string;
  colour: string;
}

export interface Look {
  node(node: number): Paint;
  room(room: number): Paint;
  /** A line that stands on the card instead of the last one; "" for none. */
  nodeNote(node: number): string;
  /** The same for a room, the longest first: what has no space is left out whole. None: []. */
  roomNotes(room: number): string[];
  nodeSign(node: number): Sign | null;
  roomSign(room: number): Sign | null;
}

const ROOM_HUE = "#64748b";

export class FamilyLook implements Look {
  private readonly paints: Record<string, Paint>;
  private readonly plainRoom: Paint;
  private readonly ofOp: Paint[];

  constructor(
    private readonly graph: Graph,
    palette: Palette,
  ) {
    this.paints = familyPaints(palette);
    this.plainRoom = paintOf(ROOM_HUE, palette);
    this.ofOp = graph.model.ops.map((op) => this.paints[op.family] ?? this.paints.other);
  }

  node(node: number): Paint {
    return this.ofOp[this.graph.model.nodes.op[node]];
  }
  room(_room: number): Paint {
    return this.plainRoom;
  }
  nodeNote(_node: number): string {
    return "";
  }
  roomNotes(_room: number): string[] {
    return [];
  }
  nodeSign(_node: number): Sign | null {
    return null;
  }
  roomSign(_room: number): Sign | null {
    return null;
  }
}

/** The look of items about which an overlay or a difference says nothing. */
function mutedPaint(palette: Palette): Paint {
  return {
    strong: mix(palette.muted, palette.dim, 0.22),
    soft: mix(palette.card, palette.muted, 0.45),
    line: palette.cardLine,
    text: palette.dim,
    dim: palette.dim,
  };
}

export class OverlayLook implements Look {
  private readonly scale: Scale;
  /** Of the sums of levels, which are larger than the figures of nodes. */
  private readonly levels: Scale;
  private readonly muted: Paint;
  private readonly paints = new Map<string, Paint>();

  constructor(
    private readonly figures: OverlayFigures,
    palette: Palette,
  ) {
    this.scale = scaleOf(figures.overlay, palette.dark);
    this.levels = figures.adds ? scaleOf(figures.overlay, palette.dark, figures.sums) : this.scale;
    this.muted = mutedPaint(palette);
  }

  private paint(colour: string): Paint {
    let paint = this.paints.get(colour);
    if (!paint) this.paints.set(colour, (paint = filled(colour)));
    return paint;
  }

  node(node: number): Paint {
    const figure = this.figures.node(node);
    return figure === undefined ? this.muted : this.paint(this.scale.colour(figure));
  }
  room(room: number): Paint {
    const figure = this.figures.room(room);
    return figure ? this.paint(this.levels.colour(this.figures.adds ? figure.sum : figure.worst)) : this.muted;
  }
  nodeNote(node: number): string {
    return this.figures.writeNode(node);
  }
  roomNotes(room: number): string[] {
    const figure = this.figures.room(room);
    return figure ? this.figures.roomTexts(figure) : [];
  }
  nodeSign(_node: number): Sign | null {
    return null;
  }
  roomSign(_room: number): Sign | null {
    return null;
  }
}

export class DifferenceLook implements Look {
  private readonly muted: Paint;
  private readonly paints: Record<Group, Paint>;

  constructor(
    private readonly differences: Differences,
    private readonly model: number,
    private readonly palette: Palette,
  ) {
    this.muted = mutedPaint(palette);
    this.paints = {
      added: this.tint(palette.added),
      removed: this.tint(palette.removed),
      changed: this.tint(palette.changed),
      otherwise: this.tint(palette.otherwise),
    };
  }

  private tint(colour: string): Paint {
    const { card, text, dim, dark } = this.palette;
    return {
      strong: colour,
      soft: mix(card, colour, dark ? 0.26 : 0.16),
      line: colour,
      text,
      dim: mix(dim, text, 0.5),
    };
  }

  private group(node: number): Group | null {
    const state = this.differences.state(this.model, node);
    return state ? groupOf(state) : null;
  }

  node(node: number): Paint {
    const group = this.group(node);
    return group ? this.paints[group] : this.muted;
  }
  room(room: number): Paint {
    const inside = this.differences.room(this.model, room);
    return inside ? this.paints[roomGroup(inside)] : this.muted;
  }
  nodeNote(node: number): string {
    const at = this.differences.change(this.model, node);
    const change = this.differences.changes[at];
    if (change?.state === "otherwise") return change.nodes.map((list) => grouped(list.length)).join(" → ") + " nodes";
    const lines = change?.lines ?? [];
    return lines.length > 1 ? `${lines[0]} (+${lines.length - 1})` : (lines[0] ?? "");
  }
  roomNotes(room: number): string[] {
    const inside = this.differences.room(this.model, room);
    if (!inside) return [];
    const counts = GROUPS.filter((group) => inside[group]).map((group) => `${GROUP_SIGNS[group]}${grouped(inside[group])}`);
    return [counts.join("  ")];
  }
  nodeSign(node: number): Sign | null {
    const group = this.group(node);
    return group ? { text: GROUP_SIGNS[group], colour: this.palette[group] } : null;
  }
  roomSign(_room: number): Sign | null {
    return null;
  }
}

/** What a room is coloured as: what is certainly another result counts more than what is computed otherwise. */
function roomGroup(inside: RoomChanges): Group {
  if (inside.changed || (inside.added && inside.removed)) return "changed";
  return inside.added ? "added" : inside.removed ? "removed" : "otherwise";
}
