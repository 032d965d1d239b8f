/** Draws the visible part of a picture, in as much detail as its size on the screen allows. */

import type { Camera } from "./camera";
import type { Palette } from "./colours";
import type { Frame } from "./compose";
import { drawEdges, drawPorts } from "./draw_edges";
import { drawItem, drawMarks, drawSpeck } from "./draw_items";
import { drawTypes } from "./draw_types";
import type { Labels } from "./labels";
import type { Look } from "./looks";
import { itemsOfRow, rowAt, type Box, type Picture } from "./picture";
import { TITLE } from "./sizes";
import type { Surface } from "./surface";
import type { TextMeasure } from "./text";

/** The highlights of a picture. */
export interface Marks {
  nodes: ReadonlySet<number>;
  rooms: ReadonlySet<number>;
  values: ReadonlySet<number>;
  /** Nodes that belong to the line of the program that is pointed at. */
  pointed: ReadonlySet<number>;
  /** Search results: nodes, and how many lie in each room. */
  foundNodes: ReadonlySet<number>;
  foundValues: ReadonlySet<number>;
  foundInRooms: ReadonlyMap<number, number>;
  /** Edges to draw strongly, by room. */
  edges: ReadonlyMap<number, ReadonlySet<number>>;
}

export interface View {
  picture: Picture;
  camera: Camera;
  palette: Palette;
  labels: Labels;
  look: Look;
  measure: TextMeasure;
  marks: Marks;
  /** While the camera moves, edges are thinned out more. */
  moving: boolean;
  /** The title bars that were drawn: they stay in sight, so that they are not where the picture has them. */
  bars: BarPlace[];
}

export interface BarPlace {
  room: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Below this height on the screen an item is a rectangle without words. */
export const SPECK = 7;

export function draw(surface: Surface, view: View): void {
  view.bars.length = 0;
  drawFrame(surface, view, view.picture.root, view.camera.view());
}

function drawFrame(surface: Surface, view: View, frame: Frame, seen: Box): void {
  if (frame.left > seen.right || frame.left + frame.width < seen.left) return;
  if (frame.depth > 0) drawGround(surface, view, frame);
  const first = Math.max(0, rowAt(frame, seen.top));
  const last = rowAt(frame, seen.bottom);
  const rows = visibleRows(frame, first, last, view.camera.zoom);
  drawEdges(surface, view, frame, seen, Math.max(0, first - 1), last);
  for (const row of rows) drawRow(surface, view, frame, row, seen);
  if (view.camera.zoom >= 0.5) drawTypes(surface, view, frame, seen, Math.max(0, first - 1), last);
  if (frame.depth > 0) drawTitle(surface, view, frame);
}

/** Far out several rows fall on one line of pixels: one of them is drawn. */
function visibleRows(frame: Frame, first: number, last: number, zoom: number): number[] {
  const rows: number[] = [];
  let drawn = -Infinity;
  for (let row = first; row <= last; row++) {
    const top = frame.rowTop[row] * zoom;
    if (top - drawn < 1) continue;
    drawn = top;
    rows.push(row);
  }
  return rows;
}

function drawRow(surface: Surface, view: View, frame: Frame, row: number, seen: Box): void {
  const { camera } = view;
  let drawn = -Infinity;
  for (const item of itemsOfRow(frame, row, seen.left, seen.right)) {
    const inner = frame.inner.get(item);
    if (inner) {
      drawFrame(surface, view, inner, seen);
      continue;
    }
    if (frame.y[item] + frame.halfHeight[item] < seen.top) continue;
    if (2 * frame.halfHeight[item] * camera.zoom >= SPECK) drawItem(surface, view, frame, item);
    else {
      const right = (frame.x[item] + frame.halfWidth[item]) * camera.zoom;
      if (right - drawn < 0.8) continue;
      drawn = right;
      drawSpeck(surface, view, frame, item);
    }
  }
}

function drawGround(surface: Surface, view: View, frame: Frame): void {
  const { camera, palette } = view;
  const [x, y] = [camera.screenX(frame.left), camera.screenY(frame.top)];
  const [width, height] = [frame.width * camera.zoom, frame.height * camera.zoom];
  const ground = palette.rooms[(frame.depth - 1) % palette.rooms.length];
  if (height < 3 * SPECK) surface.rect(x, y, width, height, ground);
  else surface.box(x, y, width, height, Math.min(10, 10 * camera.zoom + 2), ground, palette.roomLine, 1);
  const inside = drawPorts(view, frame);
  surface.curves(inside, palette.edge, Math.max(0.6, 1.2 * camera.zoom), true);
}

/** Smallest title that can be read, in pixels of the screen. */
const LEAST_TITLE = 10.5;

/** The title keeps a legible size while the room is large enough for it. */
function drawTitle(surface: Surface, view: View, frame: Frame): void {
  const { camera, palette, measure } = view;
  const width = frame.width * camera.zoom;
  const size = Math.max(LEAST_TITLE, Math.min(14, 13 * camera.zoom));
  if (width < 46 || frame.height * camera.zoom < 3 * size) return;
  const top = camera.screenY(frame.top);
  // The words stay in sight while the room is: at the left and the top of what is visible of it.
  const left = Math.max(camera.screenX(frame.left), 0);
  const visible = Math.min(camera.screenX(frame.left) + width, camera.width) - left;
  if (visible < 46) return;
  const bar = Math.max(TITLE * camera.zoom, size + 7);
  const label = view.labels.room(frame.room);
  const detailed = camera.zoom >= 0.45;
  const { title, note } = detailed
    ? titleAndNote(measure, label.title, view.look.roomNotes(frame.room), label.lines[0], size, visible)
    : { title: measure.fit(label.title, "bold", size, visible - 26), note: "" };
  const y = Math.min(Math.max(top, (frame.depth - 1) * bar), top + frame.height * camera.zoom - bar);
  const full = detailed ? visible : Math.min(visible, measure.width(title, "bold") * size + 28);
  view.bars.push({ room: frame.room, left, top: y, width: full, height: bar });
  surface.box(left, y, full, bar, 5, palette.roomBar, palette.roomLine, 1);
  surface.text("▾", left + 8, y + bar / 2, size, "plain", palette.dim);
  surface.text(title, left + 21, y + bar / 2, size, "bold", palette.text);
  if (detailed) {
    const used = measure.width(title, "bold") * size + BEFORE_NOTE;
    surface.text(note, left + used, y + bar / 2, size - 2, "plain", palette.dim);
    surface.text("⤢", left + visible - 9, y + bar / 2, size, "plain", palette.dim, "right");
  }
  drawMarks(surface, view, { frame, item: -1 });
}

/** In a bar: the sign before the title and the space after it, and the sign at the end. */
const BEFORE_NOTE = 36;
const AFTER_NOTE = 34;
/** A title gives way to a figure down to this width. */
const LEAST_NAME = 60;

/** The title of a bar, and beside it the longest note that has space as a whole: a figure that is cut is another one. */
function titleAndNote(
  measure: TextMeasure,
  title: string,
  figures: string[],
  summary: string,
  size: number,
  width: number,
): { title: string; note: string } {
  const free = width - BEFORE_NOTE - AFTER_NOTE;
  const rest = free - measure.width(title, "bold") * size;
  const notes = figures.length ? figures : [summary];
  const note = measure.first(notes, "plain", size - 2, rest);
  const last = figures.at(-1) ?? "";
  const left = free - measure.width(last, "plain") * (size - 2);
  if (note || !last || left < LEAST_NAME) return { title: measure.fit(title, "bold", size, free), note };
  return { title: measure.fit(title, "bold", size, left), note: last };
}
