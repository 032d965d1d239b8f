/** Draws items: cards with words near, rectangles far out. */

import type { Paint } from "./colours";
import type { Frame } from "./compose";
import type { View } from "./draw";
import { dimsText } from "./graph";
import type { Label } from "./labels";
import type { Sign } from "./looks";
import { SIGN, type Spot } from "./picture";
import type { Surface } from "./surface";
import { grouped } from "./words";

/** Smallest words that are drawn, in pixels of the screen. */
const LEAST_TEXT = 5;
/** Smallest mark that is seen far out, in pixels of the screen. */
const LEAST_MARK = 5;

interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

function placeOf(view: View, frame: Frame, item: number): Place {
  const { camera } = view;
  return {
    x: camera.screenX(frame.x[item] - frame.halfWidth[item]),
    y: camera.screenY(frame.y[item] - frame.halfHeight[item]),
    width: 2 * frame.halfWidth[item] * camera.zoom,
    height: 2 * frame.halfHeight[item] * camera.zoom,
  };
}

/** An item that is too small for words. Search results and changes keep a size that is seen. */
export function drawSpeck(surface: Surface, view: View, frame: Frame, item: number): void {
  const { kind, ref } = view.picture.graph.model.rooms[frame.room].items;
  const place = placeOf(view, frame, item);
  const [height, width] = [Math.max(0.9, place.height), Math.max(0.9, place.width)];
  if (kind[item] === 0) {
    const node = ref[item];
    if (view.marks.foundNodes.has(node) || view.marks.pointed.has(node)) speck(surface, place, view.palette.hit);
    else if (view.look.nodeSign(node)) speck(surface, place, view.look.node(node).strong);
    else surface.rect(place.x, place.y, width, height, view.look.node(node).strong);
  } else if (kind[item] === 1) {
    if (view.marks.foundInRooms.has(ref[item])) speck(surface, place, view.palette.hit);
    else surface.rect(place.x, place.y, width, height, view.look.room(ref[item]).strong);
  } else if (kind[item] !== 4) surface.rect(place.x, place.y, width, height, view.palette.dim);
  drawMarks(surface, view, { frame, item });
}

function speck(surface: Surface, { x, y, width, height }: Place, colour: string): void {
  const [w, h] = [Math.max(LEAST_MARK, width), Math.max(LEAST_MARK - 1, height)];
  surface.rect(x + (width - w) / 2, y + (height - h) / 2, w, h, colour);
}

export function drawItem(surface: Surface, view: View, frame: Frame, item: number): void {
  const { kind, ref } = view.picture.graph.model.rooms[frame.room].items;
  const place = placeOf(view, frame, item);
  if (kind[item] === 0) {
    const label = withNote(view.labels.node(ref[item]), view.look.nodeNote(ref[item]));
    const hasBody = view.picture.graph.model.nodes.bodies[ref[item]].length > 0;
    drawCard(surface, view, place, view.look.node(ref[item]), label, view.look.nodeSign(ref[item]), hasBody);
  } else if (kind[item] === 1) drawRoom(surface, view, place, ref[item]);
  else drawEnd(surface, view, place, kind[item], ref[item]);
  drawMarks(surface, view, { frame, item });
}

/** The note of an overlay stands in place of the attributes; the name, the last line, stays. */
function withNote(label: Label, note: string): Label & { note: boolean } {
  return note ? { title: label.title, lines: [...label.lines.slice(-1), note], note: true } : { ...label, note: false };
}

function drawCard(
  surface: Surface,
  view: View,
  place: Place,
  paint: Paint,
  label: Label & { note: boolean },
  sign: Sign | null,
  hasBody: boolean,
): void {
  const { zoom } = view.camera;
  const { x, y, width, height } = place;
  const radius = Math.min(6, 6 * zoom);
  if (height < 13) surface.rect(x, y, width, height, paint.strong);
  else {
    const stripe = Math.max(2, 5 * zoom);
    surface.box(x, y, width, height, radius, paint.strong, "", 0);
    surface.box(x + stripe, y, width - stripe, height, radius * 0.7, paint.soft, "", 0);
    surface.box(x, y, width, height, radius, "", paint.line, Math.min(1.2, 0.6 + zoom / 2));
  }
  const onto = height < 13 ? { ...paint, text: view.palette.dark ? "#10141a" : "#ffffff" } : paint;
  const free = hasBody && height >= 13 ? { ...place, width: width - SIGN * zoom } : place;
  drawWords(surface, view, free, onto, label, 14 * zoom);
  if (hasBody && height >= 13)
    surface.text("⤢", x + width - (SIGN / 2) * zoom, y + height / 2, Math.max(8, 14 * zoom), "plain", onto.dim, "center");
  if (sign) drawSign(surface, place, sign, zoom, view.palette.card);
}

/** The size of the lines below a title, and the space after words, at 100%. */
const SMALL = 10.5;
const AFTER_WORDS = 8;

/** A title as large as its box allows, and the lines below where they can be read. */
function drawWords(
  surface: Surface,
  view: View,
  place: Place,
  paint: Paint,
  label: Label & { note: boolean },
  indent: number,
): void {
  const { measure, camera } = view;
  const { zoom } = camera;
  const free = place.width - indent - AFTER_WORDS * zoom;
  const small = SMALL * zoom;
  const lines = small < LEAST_TEXT ? [] : label.lines.slice(-2);
  const wide = measure.width(label.title, "bold");
  const largest = lines.length ? Math.max(13 * zoom, Math.min(11, 17 * zoom)) : Math.min(12, 27 * zoom);
  const size = Math.max(13 * zoom, Math.min(largest, free / wide));
  if (size < LEAST_TEXT) return;
  const pitch = small * 1.42;
  let y = place.y + place.height / 2 - (lines.length * pitch) / 2;
  surface.text(measure.fit(label.title, "bold", size, free), place.x + indent, y, size, "bold", paint.text);
  y += size / 2 + pitch / 2 + zoom;
  lines.forEach((line, at) => {
    const strong = label.note && at === lines.length - 1;
    const cut = strong || (lines.length > 1 && at === 0) ? "end" : "middle";
    surface.text(
      measure.fit(line, strong ? "bold" : "plain", small, free, cut),
      place.x + indent,
      y,
      small,
      strong ? "bold" : "plain",
      strong ? paint.text : paint.dim,
    );
    y += pitch;
  });
}

function drawSign(surface: Surface, place: Place, sign: Sign, zoom: number, ground: string): void {
  const size = Math.max(9, 17 * zoom);
  if (place.height < 11) return;
  const [x, y] = [place.x + place.width - size * 0.75, place.y - size * 0.28];
  surface.box(x, y, size, size, size / 2, sign.colour, ground, 1);
  surface.text(sign.text, x + size / 2, y + size / 2, size * 0.8, "bold", ground, "center");
}

/** A closed room: a small pile of cards, the sign that opens it, its title and what is inside. */
function drawRoom(surface: Surface, view: View, place: Place, room: number): void {
  const { zoom } = view.camera;
  const paint = view.look.room(room);
  const { x, y, width, height } = place;
  const radius = Math.min(8, 8 * zoom);
  const step = 3.5 * zoom;
  for (let behind = 2; behind >= 1 && height >= 13; behind--) {
    surface.box(x + behind * step, y + behind * step, width, height, radius, paint.soft, paint.line, 0.8);
  }
  surface.box(x, y, width, height, radius, paint.soft, paint.line, Math.min(1.4, 0.6 + zoom));
  const indent = Math.max(24 * zoom, height >= 13 ? 9 : 3);
  if (height >= 13)
    surface.text("▸", x + indent / 2, y + height / 2, Math.max(8, 14 * zoom), "plain", paint.dim, "center");
  const notes = view.look.roomNotes(room);
  const label = view.labels.room(room);
  const note = view.measure.first(notes, "bold", SMALL, place.width / zoom - (indent / zoom + AFTER_WORDS)) || notes.at(-1);
  drawWords(
    surface,
    view,
    place,
    paint,
    { title: label.title, lines: note ? [...label.lines, note] : label.lines, note: note !== undefined },
    indent,
  );
  const found = view.marks.foundInRooms.get(room);
  if (found) drawCount(surface, place, found, zoom, view);
}

/** How many search results a closed room holds. */
function drawCount(surface: Surface, place: Place, found: number, zoom: number, view: View): void {
  const size = Math.max(9, 11 * zoom);
  const text = grouped(found);
  const width = view.measure.width(text, "bold") * size + 10;
  surface.box(
    place.x + place.width - width + 4,
    place.y - size * 0.7,
    width,
    size * 1.5,
    size * 0.75,
    view.palette.hit,
    "",
    0,
  );
  surface.text(
    text,
    place.x + place.width - width / 2 + 4,
    place.y + size * 0.05,
    size,
    "bold",
    view.palette.dark ? "#10141a" : "#ffffff",
    "center",
  );
}

const END_WORDS = ["", "", "input", "output", ""];

/** Inputs and outputs of a room, and stubs. */
function drawEnd(surface: Surface, view: View, place: Place, kind: number, value: number): void {
  const { palette, camera, measure, picture } = view;
  const { zoom } = camera;
  const name = picture.graph.valueName(value);
  if (kind === 4) {
    surface.box(place.x, place.y, place.width, place.height, place.height / 2, palette.ground, palette.edge, 0.8);
    if (10 * zoom >= LEAST_TEXT)
      surface.text(
        measure.fit(name, "plain", 10 * zoom, place.width - 16 * zoom),
        place.x + place.width / 2,
        place.y + place.height / 2,
        10 * zoom,
        "plain",
        palette.accent,
        "center",
      );
    return;
  }
  surface.box(
    place.x,
    place.y,
    place.width,
    place.height,
    place.height / 2,
    palette.card,
    palette.edge,
    Math.min(1.4, 0.5 + zoom),
  );
  const type = picture.graph.type(value);
  const detailed = 9.5 * zoom >= LEAST_TEXT;
  const size = detailed ? 12 * zoom : Math.min(11, 20 * zoom);
  if (size < LEAST_TEXT) return;
  const free = place.width - 20 * zoom;
  const middle = place.y + place.height / 2;
  surface.text(
    measure.fit(name, "bold", size, free),
    place.x + place.width / 2,
    middle - (detailed ? 6.5 * zoom : 0),
    size,
    "bold",
    palette.text,
    "center",
  );
  const below = type ? `${type.dtype} ${type.dims ? dimsText(type) : ""}` : `${END_WORDS[kind]}, type unknown`;
  if (detailed)
    surface.text(
      measure.fit(below, "plain", 9.5 * zoom, free),
      place.x + place.width / 2,
      middle + 7.5 * zoom,
      9.5 * zoom,
      "plain",
      palette.dim,
      "center",
    );
}

/** Outlines of what is selected, pointed at, or found. */
export function drawMarks(surface: Surface, view: View, spot: Spot): void {
  const { marks, palette } = view;
  const { frame, item } = spot;
  const { items } = view.picture.graph.model.rooms[frame.room];
  const kind = item < 0 ? 1 : items.kind[item];
  const ref = item < 0 ? frame.room : items.ref[item];
  if (kind === 0 && marks.pointed.has(ref)) outline(surface, view, spot, palette.hit, 2);
  else if (kind === 0 && marks.foundNodes.has(ref)) outline(surface, view, spot, palette.hit, 1.6);
  else if (kind >= 2 && marks.foundValues.has(ref)) outline(surface, view, spot, palette.hit, 1.6);
  const chosen = kind === 0 ? marks.nodes.has(ref) : kind === 1 ? marks.rooms.has(ref) : marks.values.has(ref);
  if (chosen) outline(surface, view, spot, palette.accent, 2.4);
}

function outline(surface: Surface, view: View, spot: Spot, colour: string, thick: number): void {
  const box = view.picture.box(spot);
  const { camera } = view;
  const away = 2 + thick / 2;
  const [x, y] = [camera.screenX(box.left) - away, camera.screenY(box.top) - away];
  const [width, height] = [
    (box.right - box.left) * camera.zoom + 2 * away,
    (box.bottom - box.top) * camera.zoom + 2 * away,
  ];
  const more = Math.max(0, 10 - height) / 2;
  surface.box(
    x - more,
    y - more,
    width + 2 * more,
    height + 2 * more,
    Math.min(9, 8 * camera.zoom + 2),
    "",
    colour,
    thick,
  );
}
