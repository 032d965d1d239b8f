/** The whole picture in small, with a frame around what is visible. A click moves there. */

import type { Camera } from "./camera";
import type { Palette } from "./colours";
import type { Frame } from "./compose";
import { el, style } from "./dom";
import type { Look } from "./looks";
import type { Box, Picture } from "./picture";

const WIDTH = 160;
const HEIGHT = 220;
/** Its distance from the edges of the pane, in pixels, as in the style. */
const GAP = 12;
/** The largest share of a pane that the map covers, in each direction. */
const SHARE = 0.28;
/** Least width and height of a picture that is stretched. */
const LEAST = 48;
/** The corners of the pane, the one that it stands in first of all first. */
const CORNERS = [false, true].flatMap((top) => [false, true].map((left) => ({ left, top })));
/** A selected item counts as much as all others that a map covers. */
const MUCH = 1e6;
/** In a pane narrower than this, in pixels, a map would cover a good part of the nodes. */
const NARROW = 420;
/** The most items that are drawn; of more items, only a part is. */
const MOST_ITEMS = 20_000;

export class Minimap {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { "aria-hidden": "true" });
  private readonly still = document.createElement("canvas");
  private scaleX = 1;
  private scaleY = 1;
  private picture: Picture | null = null;

  constructor(private readonly go: (x: number, y: number) => void) {
    this.element = el("div", { class: "minimap" }, this.canvas);
    const move = (event: PointerEvent): void => {
      if (!(event.buttons & 1)) return;
      const box = this.canvas.getBoundingClientRect();
      this.go((event.clientX - box.left) / this.scaleX, (event.clientY - box.top) / this.scaleY);
      event.preventDefault();
    };
    this.canvas.addEventListener("pointerdown", move);
    this.canvas.addEventListener("pointermove", move);
  }

  /** Draws the picture anew; after that, only the frame moves. */
  fill(picture: Picture, look: Look, palette: Palette, room: { width: number; height: number }): void {
    this.picture = picture;
    const { root } = picture;
    const scale = Math.min(
      Math.min(WIDTH, room.width * SHARE) / root.width,
      Math.min(HEIGHT, room.height * SHARE) / root.height,
    );
    // A long thin picture is stretched, so that its width is seen.
    this.scaleX = Math.max(scale, Math.min(LEAST / root.width, 1));
    this.scaleY = Math.max(scale, Math.min(LEAST / root.height, 1));
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const [width, height] = [
      Math.max(LEAST / 2, root.width * this.scaleX),
      Math.max(LEAST / 2, root.height * this.scaleY),
    ];
    for (const canvas of [this.canvas, this.still]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    style(this.canvas, "width", `${width}px`);
    style(this.canvas, "height", `${height}px`);
    const context = this.still.getContext("2d")!;
    context.setTransform(ratio * this.scaleX, 0, 0, ratio * this.scaleY, 0, 0);
    const every = Math.max(1, Math.ceil(picture.size / MOST_ITEMS));
    drawSmall(context, picture, root, look, palette, every, [1.2 / this.scaleX, 1.2 / this.scaleY]);
  }

  /**
   * Stands in the corner where it covers the least, what is selected least of all; boxes are in pixels of the pane.
   * Where each corner has something, it lets that shine through; from a narrow pane it goes.
   */
  avoid(selected: Box[], others: Box[], pane: { width: number; height: number }): void {
    const [width, height] = [this.element.offsetWidth + GAP, this.element.offsetHeight + GAP];
    const covered = CORNERS.map(({ left, top }) => {
      const [x, y] = [left ? 0 : pane.width - width, top ? 0 : pane.height - height];
      const covers = (box: Box): boolean => box.right > x && box.left < x + width && box.bottom > y && box.top < y + height;
      return selected.filter(covers).length * MUCH + others.filter(covers).length;
    });
    const least = Math.min(...covered);
    const { left, top } = CORNERS[covered.indexOf(least)];
    const { classList } = this.element;
    classList.toggle("at-left", left);
    classList.toggle("at-top", top);
    classList.toggle("over", least > 0);
    classList.toggle("away", least > 0 && pane.width < NARROW);
  }

  frame(camera: Camera, palette: Palette): void {
    if (!this.picture) return;
    const context = this.canvas.getContext("2d")!;
    const { width, height } = this.canvas;
    const ratio = width / Math.max(1, this.canvas.clientWidth || width);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.still, 0, 0);
    const seen = camera.view();
    const [x, y] = [this.scaleX * ratio, this.scaleY * ratio];
    const [left, top] = [Math.max(1, seen.left * x), Math.max(1, seen.top * y)];
    const [right, bottom] = [Math.min(width - 1, seen.right * x), Math.min(height - 1, seen.bottom * y)];
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5 * ratio;
    context.strokeRect(
      Math.min(left, width - 4),
      Math.min(top, height - 4),
      Math.max(3, right - left),
      Math.max(3, bottom - top),
    );
    // A picture that is visible as a whole needs no map.
    this.element.hidden =
      seen.left <= 0 &&
      seen.top <= 0 &&
      seen.right >= this.picture.root.width &&
      seen.bottom >= this.picture.root.height;
  }
}

function drawSmall(
  context: CanvasRenderingContext2D,
  picture: Picture,
  frame: Frame,
  look: Look,
  palette: Palette,
  every: number,
  least: [number, number],
): void {
  const { kind, ref } = picture.graph.model.rooms[frame.room].items;
  if (frame.depth > 0) {
    context.fillStyle = palette.rooms[(frame.depth - 1) % palette.rooms.length];
    context.fillRect(frame.left, frame.top, frame.width, frame.height);
  }
  for (let item = 0; item < kind.length; item += every) {
    if (kind[item] === 4 || frame.inner.has(item)) continue;
    context.fillStyle =
      kind[item] === 0 ? look.node(ref[item]).strong : kind[item] === 1 ? look.room(ref[item]).strong : palette.dim;
    const [w, h] = [Math.max(least[0], 2 * frame.halfWidth[item]), Math.max(least[1], 2 * frame.halfHeight[item])];
    context.fillRect(frame.x[item] - w / 2, frame.y[item] - h / 2, w, h);
  }
  for (const inner of frame.inner.values()) drawSmall(context, picture, inner, look, palette, every, least);
}
