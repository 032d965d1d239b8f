/** Draws the picture as SVG, to be saved. */

import { style } from "./dom";
import type { Align, Surface } from "./surface";
import { FONTS } from "./text";

const ANCHORS: Record<Align, string> = { left: "start", center: "middle", right: "end" };

/** Text as XML: markup is escaped, and letters that XML doesn't know are replaced. */
export function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}

const round = (value: number): string => String(Math.round(value * 100) / 100);

export class SvgSurface implements Surface {
  private readonly parts: string[] = [];
  private clips = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
    ground: string,
  ) {
    this.rect(0, 0, width, height, ground);
  }

  readonly rect: Surface["rect"] = (x, y, width, height, fill) => {
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"/>`,
    );
  };

  readonly box: Surface["box"] = (x, y, width, height, radius, fill, line, thick) => {
    const edge = line && thick > 0 ? ` stroke="${line}" stroke-width="${round(thick)}"` : "";
    const place = `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${round(radius)}"`;
    this.parts.push(`<rect ${place} fill="${fill || "none"}"${edge}/>`);
  };

  readonly curves: Surface["curves"] = (points, colour, thick, straight, dashed = false) => {
    let path = "";
    for (let at = 0; at < points.length; at += 4) {
      const [x0, y0, x1, y1] = points.slice(at, at + 4);
      const middle = round((y0 + y1) / 2);
      path += `M${round(x0)} ${round(y0)}`;
      path +=
        straight || Math.abs(x1 - x0) < 1
          ? `L${round(x1)} ${round(y1)}`
          : `C${round(x0)} ${middle} ${round(x1)} ${middle} ${round(x1)} ${round(y1)}`;
    }
    const dashes = dashed ? ' stroke-dasharray="4 3"' : "";
    if (path)
      this.parts.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="${round(thick)}"${dashes}/>`);
  };

  readonly triangle: Surface["triangle"] = (x, y, size, fill) => {
    this.parts.push(
      `<path d="M${round(x - size * 0.6)} ${round(y - size)}H${round(x + size * 0.6)}L${round(x)} ${round(y)}Z" fill="${fill}"/>`,
    );
  };

  readonly text: Surface["text"] = (text, x, y, size, face, colour, align = "left") => {
    const weight = face === "bold" ? ' font-weight="600"' : "";
    const place = `x="${round(x)}" y="${round(y)}" font-size="${round(size)}" text-anchor="${ANCHORS[align]}"`;
    this.parts.push(
      `<text ${place} font-family="${escaped(FONTS[face])}"${weight} dominant-baseline="central" fill="${colour}">${escaped(text)}</text>`,
    );
  };

  readonly clip: Surface["clip"] = (x, y, width, height) => {
    const id = `c${this.clips++}`;
    this.parts.push(
      `<clipPath id="${id}"><rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/></clipPath><g clip-path="url(#${id})">`,
    );
  };

  readonly unclip: Surface["unclip"] = () => {
    this.parts.push("</g>");
  };

  /** Draws into a part as high as its own, that begins at `left`: what lies outside is cut off. */
  part(left: number, width: number, height: number, draw: () => void): void {
    this.parts.push(`<svg x="${round(left)}" y="0" width="${round(width)}" height="${round(height)}">`);
    draw();
    this.parts.push("</svg>");
  }

  /** The drawing as an element of the page, as wide as `width` or as its container. */
  element(title: string, width: number): SVGElement {
    const parsed = new DOMParser().parseFromString(this.toString(title), "image/svg+xml").documentElement;
    const made = document.adoptNode(parsed) as unknown as SVGElement;
    made.removeAttribute("width");
    made.removeAttribute("height");
    made.setAttribute("role", "img");
    style(made, "max-width", `${round(width)}px`);
    return made;
  }

  toString(title: string): string {
    const size = `width="${round(this.width)}" height="${round(this.height)}" viewBox="0 0 ${round(this.width)} ${round(this.height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" ${size}><title>${escaped(title)}</title>${this.parts.join("\n")}</svg>\n`;
  }
}
