/** A canvas that shows a side: draws when something changed, and turns pointers and wheels into movements. */

import { Camera, FARTHEST } from "./camera";
import { LIGHT, type Palette } from "./colours";
import { el, style } from "./dom";
import { draw, type BarPlace, type View } from "./draw";
import type { Look } from "./looks";
import { Minimap } from "./minimap";
import { GAP, sheetFor } from "./paper";
import { itemsOfRow, rowAt, type Box, type Hit } from "./picture";
import type { Side } from "./side";
import { CanvasSurface } from "./surface";
import { SvgSurface } from "./svg";
import type { TextMeasure } from "./text";

export interface PaneEvents {
  click(hit: Hit | null, event: { shift: boolean; double: boolean }): void;
  hover(hit: Hit | null): void;
  moved(): void;
  focus(): void;
}

/** A picture of more items is printed only as far as it can be read: else a PDF takes minutes. */
const MOST_IN_FULL = 3000;
/** After so many milliseconds without a movement, all edges are drawn. */
const SETTLED = 120;
/** A pointer that moved less than this, in pixels, has clicked. */
const CLICK = 4;
/** From this zoom on the minimap gives way to items: below, their words cannot be read. */
const LEAST_AVOIDED = 0.25;
/** The minimap gives way to so many selected items. */
const MOST_AVOIDED = 40;
const WHEEL = 0.0016;
const PINCH_WHEEL = 0.01;

export class Pane {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly minimap: Minimap;
  private readonly surface: CanvasSurface;
  private readonly bars: BarPlace[] = [];
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private travelled = 0;
  private requested = false;
  private settle = 0;
  private moving = false;
  private mapped = false;
  private lastClick = { time: 0, x: 0, y: 0 };
  /** How long the last frames took to draw, in milliseconds; for measurements. */
  readonly times: number[] = [];

  constructor(
    readonly side: Side,
    private readonly measure: TextMeasure,
    private look: Look,
    private palette: Palette,
    private readonly events: PaneEvents,
    label: string,
  ) {
    this.canvas = el("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": label,
      "aria-roledescription": "graph",
      "aria-describedby": "picture-help",
    });
    this.minimap = new Minimap((x, y) => this.goTo(x, y));
    this.element = el("div", { class: "pane" }, this.canvas, this.minimap.element);
    this.surface = new CanvasSurface(this.canvas.getContext("2d", { alpha: false })!);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  paint(look: Look, palette: Palette): void {
    this.look = look;
    this.palette = palette;
    this.changed();
  }

  /** The picture changed: the minimap is drawn again, too. */
  changed(): void {
    this.mapped = false;
    this.redraw();
  }

  redraw(): void {
    if (this.requested) return;
    this.requested = true;
    requestAnimationFrame(() => this.frame());
  }

  resize(): void {
    const { clientWidth, clientHeight } = this.element;
    if (!clientWidth || !clientHeight) return;
    this.side.camera.width = clientWidth;
    this.side.camera.height = clientHeight;
    const ratio = this.ratio();
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    style(this.canvas, "width", `${clientWidth}px`);
    style(this.canvas, "height", `${clientHeight}px`);
    this.requested = this.mapped = false;
    this.frame();
  }

  private ratio(): number {
    return Math.min(2, window.devicePixelRatio || 1);
  }

  private view(palette = this.palette): View {
    const { picture, camera, labels, marks } = this.side;
    return {
      picture,
      camera,
      labels,
      marks,
      palette,
      look: this.look,
      measure: this.measure,
      moving: this.moving,
      bars: this.bars,
    };
  }

  private frame(): void {
    this.requested = false;
    if (!this.canvas.width || !this.side.camera.width) return;
    const begin = performance.now();
    const { camera } = this.side;
    this.surface.begin(this.ratio(), camera.width, camera.height, this.palette.ground, this.moving);
    draw(this.surface, this.view());
    if (!this.mapped && !this.moving) {
      this.minimap.fill(this.side.picture, this.look, this.palette, camera);
      this.mapped = true;
    }
    this.minimap.frame(camera, this.palette);
    if (!this.moving) this.minimap.avoid(this.selectedBoxes(), [...this.itemBoxes(), ...this.barBoxes()], camera);
    this.times.push(performance.now() - begin);
    if (this.times.length > 600) this.times.shift();
  }

  /** Where items are on the screen, as far as they can be seen; far out they are specks that a map may cover. */
  private itemBoxes(): Box[] {
    const { camera, picture } = this.side;
    if (camera.zoom < LEAST_AVOIDED) return [];
    const seen = camera.view();
    const found: Box[] = [];
    for (const frame of picture.frames.values()) {
      for (let row = Math.max(0, rowAt(frame, seen.top)); row <= rowAt(frame, seen.bottom); row++)
        for (const item of itemsOfRow(frame, row, seen.left, seen.right))
          if (!frame.inner.has(item)) found.push(this.onScreen(picture.box({ frame, item })));
    }
    return found;
  }

  private barBoxes(): Box[] {
    return this.bars.map(({ left, top, width, height }) => ({ left, top, right: left + width, bottom: top + height }));
  }

  private onScreen({ left, right, top, bottom }: Box): Box {
    const { camera } = this.side;
    return {
      left: camera.screenX(left),
      right: camera.screenX(right),
      top: camera.screenY(top),
      bottom: camera.screenY(bottom),
    };
  }

  /** Where the selection is on the screen. */
  private selectedBoxes(): Box[] {
    const { side } = this;
    return side.selection.slice(0, MOST_AVOIDED).flatMap((chosen) => {
      const spot = side.spot(chosen);
      if (!spot || spot.item < 0) return [];
      return this.onScreen(side.picture.box(spot));
    });
  }

  /** What is visible, as SVG. */
  svg(title: string): string {
    const surface = new SvgSurface(this.side.camera.width, this.side.camera.height, this.palette.ground);
    draw(surface, { ...this.view(), moving: false, bars: [] });
    return surface.toString(title);
  }

  /** The whole picture on white, for paper. */
  onPaper(look: Look, title: string): { svg: SVGElement; wide: boolean } {
    const sheet = sheetFor(this.side.picture);
    // All words are drawn, even small ones: a PDF can be enlarged. Of a very large picture, only what can be read.
    const zoom = this.side.picture.size <= MOST_IN_FULL ? 1 : Math.max(2 * sheet.zoom, FARTHEST);
    const palette = { ...LIGHT, ground: "#ffffff" };
    const surface = new SvgSurface(sheet.width * zoom, sheet.height * zoom, palette.ground);
    const view = { ...this.view(palette), look, moving: false, bars: [] };
    let left = 0;
    for (const strip of sheet.strips) {
      const camera = new Camera();
      [camera.width, camera.height] = [(strip.right - strip.left) * zoom, (strip.bottom - strip.top) * zoom];
      camera.zoom = zoom;
      camera.centre(strip);
      surface.part(left, camera.width, camera.height, () => draw(surface, { ...view, camera }));
      left += camera.width + GAP * zoom;
    }
    return { svg: surface.element(title, sheet.width * sheet.zoom), wide: sheet.wide };
  }

  /** Another side has moved, or the page has: no event. */
  movedFromOutside(): void {
    this.startMoving();
  }

  private moved(): void {
    this.startMoving();
    this.events.moved();
  }

  private startMoving(): void {
    this.moving = true;
    window.clearTimeout(this.settle);
    this.settle = window.setTimeout(() => {
      this.moving = false;
      this.redraw();
    }, SETTLED);
    this.redraw();
  }

  panBy(dx: number, dy: number): void {
    this.side.camera.pan(dx, dy);
    this.moved();
  }

  zoomBy(factor: number, x = this.side.camera.width / 2, y = this.side.camera.height / 2): void {
    this.side.camera.zoomAt(x, y, factor);
    this.moved();
  }

  goTo(x: number, y: number): void {
    this.side.camera.x = x;
    this.side.camera.y = y;
    this.moved();
  }

  hit(x: number, y: number): Hit | null {
    for (let at = this.bars.length - 1; at >= 0; at--) {
      const bar = this.bars[at];
      if (x < bar.left || x > bar.left + bar.width || y < bar.top || y > bar.top + bar.height) continue;
      const frame = this.side.picture.frames.get(bar.room);
      if (!frame) continue;
      return {
        frame,
        item: -1,
        part: x < bar.left + 22 ? "toggle" : x > bar.left + bar.width - 22 && bar.width > 90 ? "enter" : "body",
      };
    }
    return this.side.picture.hit(this.side.camera.worldX(x), this.side.camera.worldY(y));
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("focus", () => this.events.focus());
    canvas.addEventListener("mouseleave", () => this.events.hover(null));
  }

  private place(event: PointerEvent | WheelEvent): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 && event.button !== 1) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    this.travelled = 0;
    event.preventDefault();
  }

  private move(event: PointerEvent): void {
    const now = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const hit = this.hit(now.x, now.y);
      this.canvas.classList.toggle("over", hit !== null && !(hit.item < 0 && hit.part === "body"));
      this.events.hover(hit);
      return;
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    this.pointers.set(event.pointerId, now);
    this.travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (others.length === 1) this.pinch(before, now, others[0][1]);
    else if (this.travelled > CLICK) this.panBy(now.x - before.x, now.y - before.y);
  }

  private pinch(
    before: { x: number; y: number },
    now: { x: number; y: number },
    other: { x: number; y: number },
  ): void {
    const [old, far] = [
      Math.hypot(before.x - other.x, before.y - other.y),
      Math.hypot(now.x - other.x, now.y - other.y),
    ];
    this.side.camera.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    this.zoomBy(far / Math.max(1, old), (now.x + other.x) / 2, (now.y + other.y) / 2);
  }

  private up(event: PointerEvent): void {
    const known = this.pointers.delete(event.pointerId);
    if (!known || this.travelled > CLICK || this.pointers.size) return;
    const { x, y } = this.place(event);
    const double =
      event.timeStamp - this.lastClick.time < 350 && Math.hypot(x - this.lastClick.x, y - this.lastClick.y) < 6;
    this.lastClick = { time: double ? 0 : event.timeStamp, x, y };
    this.events.click(this.hit(x, y), { shift: event.shiftKey, double });
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? this.side.camera.height : 1;
    const { x, y } = this.place(event);
    if (event.shiftKey)
      this.panBy(
        -event.deltaX * lines - (event.deltaX ? 0 : event.deltaY * lines),
        event.deltaX ? -event.deltaY * lines : 0,
      );
    else this.zoomBy(Math.exp(-event.deltaY * lines * (event.ctrlKey ? PINCH_WHEEL : WHEEL)), x, y);
  }
}
