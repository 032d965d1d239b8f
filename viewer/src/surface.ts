/** The surfaces on which the picture is drawn: the canvas of the page, or SVG. All positions are pixels of the screen.
 *
 * Parameters are declared in `Surface` only; the two classes take their types from it. */

import { font, type Face } from "./text";

export type Align = "left" | "center" | "right";

export interface Surface {
  rect(x: number, y: number, width: number, height: number, fill: string): void;
  box(
    x: number,
    y: number,
    width: number,
    height: number,
    radius: number,
    fill: string,
    line: string,
    thick: number,
  ): void;
  /** Curves as x0, y0, x1, y1 in a row: straight, or bent so that they leave and arrive upright. */
  curves(points: number[], colour: string, thick: number, straight: boolean, dashed?: boolean): void;
  triangle(x: number, y: number, size: number, fill: string): void;
  text(text: string, x: number, y: number, size: number, face: Face, colour: string, align?: Align): void;
  /** Draws inside a rectangle only, until `unclip`. */
  clip(x: number, y: number, width: number, height: number): void;
  unclip(): void;
}

/** Skia gets slow with paths of many segments that cross each other. */
const CURVES_A_PATH = 200;

export class CanvasSurface implements Surface {
  private font = "";
  private fill = "";
  /** Sizes of fonts in a pixel: letters of a new size are drawn slowly, and while the camera zooms each frame would have one. */
  private grain = 4;

  constructor(readonly context: CanvasRenderingContext2D) {}

  /** Forgets the state of the context, because a resize has reset it. */
  begin(ratio: number, width: number, height: number, ground: string, moving: boolean): void {
    this.grain = moving ? 1 : 4;
    this.font = this.fill = "";
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.textBaseline = "middle";
    this.rect(0, 0, width, height, ground);
  }

  private ink(colour: string): void {
    if (colour !== this.fill) this.context.fillStyle = this.fill = colour;
  }

  readonly rect: Surface["rect"] = (x, y, width, height, fill) => {
    this.ink(fill);
    this.context.fillRect(x, y, width, height);
  };

  readonly box: Surface["box"] = (x, y, width, height, radius, fill, line, thick) => {
    const { context } = this;
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    if (fill) {
      this.ink(fill);
      context.fill();
    }
    if (line && thick > 0) {
      context.strokeStyle = line;
      context.lineWidth = thick;
      context.stroke();
    }
  };

  readonly curves: Surface["curves"] = (points, colour, thick, straight, dashed = false) => {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = thick;
    if (dashed) context.setLineDash([4, 3]);
    for (let at = 0; at < points.length;) {
      context.beginPath();
      for (const end = Math.min(points.length, at + 4 * CURVES_A_PATH); at < end; at += 4) {
        const [x0, y0, x1, y1] = [points[at], points[at + 1], points[at + 2], points[at + 3]];
        context.moveTo(x0, y0);
        if (straight || Math.abs(x1 - x0) < 1) context.lineTo(x1, y1);
        else context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
      }
      context.stroke();
    }
    if (dashed) context.setLineDash([]);
  };

  readonly triangle: Surface["triangle"] = (x, y, size, fill) => {
    const { context } = this;
    this.ink(fill);
    context.beginPath();
    context.moveTo(x - size * 0.6, y - size);
    context.lineTo(x + size * 0.6, y - size);
    context.lineTo(x, y);
    context.fill();
  };

  readonly text: Surface["text"] = (text, x, y, size, face, colour, align = "left") => {
    const wanted = font(face, Math.max(1, Math.round(size * this.grain)) / this.grain);
    if (wanted !== this.font) this.context.font = this.font = wanted;
    if (this.context.textAlign !== align) this.context.textAlign = align;
    this.ink(colour);
    this.context.fillText(text, x, y);
  };

  readonly clip: Surface["clip"] = (x, y, width, height) => {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
  };

  readonly unclip: Surface["unclip"] = () => {
    this.context.restore();
    this.font = this.fill = "";
  };
}
