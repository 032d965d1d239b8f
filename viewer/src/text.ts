/** Widths of texts, and texts shortened to a width. Letters are measured once each, not every text. */

export type Face = "plain" | "bold" | "mono";

export const FONTS: Record<Face, string> = {
  plain: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif',
  bold: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif',
  mono: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
};

export function font(face: Face, size: number): string {
  return `${face === "bold" ? "600 " : ""}${size}px ${FONTS[face]}`;
}

/** At 100 pixels the widths of letters are exact enough. */
const MEASURED_AT = 100;

export class TextMeasure {
  private readonly widths: Record<Face, Map<string, number>> = { plain: new Map(), bold: new Map(), mono: new Map() };
  private readonly fitted = new Map<string, string>();

  /** `measure` gives the width of a text in a font, in pixels. */
  constructor(private readonly measure: (text: string, font: string) => number) {}

  /** The width of a text at size 1. */
  width(text: string, face: Face): number {
    const known = this.widths[face];
    let width = 0;
    for (const letter of text) {
      let one = known.get(letter);
      if (one === undefined) known.set(letter, (one = this.measure(letter, font(face, MEASURED_AT)) / MEASURED_AT));
      width += one;
    }
    return width;
  }

  /** The text, or what fits of it with …: between its beginning and its end, which names tell apart, or at its end. */
  fit(text: string, face: Face, size: number, width: number, cut: "middle" | "end" = "middle"): string {
    if (text.length * size * 0.2 < width && this.width(text, face) * size <= width) return text;
    const key = `${face}${cut}${size}/${Math.round(width)}/${text}`;
    let found = this.fitted.get(key);
    if (found === undefined) {
      if (this.fitted.size > 20_000) this.fitted.clear();
      this.fitted.set(key, (found = this.shorten(text, face, width / size, cut)));
    }
    return found;
  }

  /** The first of the texts that fits as a whole; "" if none does. */
  first(texts: string[], face: Face, size: number, width: number): string {
    return texts.find((text) => this.width(text, face) * size <= width) ?? "";
  }

  private shorten(text: string, face: Face, width: number, cut: "middle" | "end"): string {
    const letters = [...text.slice(0, 400)];
    if (text.length > 400) letters.push(...text.slice(-100));
    const tail = letters.length;
    let [low, high] = [0, letters.length];
    const shortened = (kept: number): string => {
      const end = cut === "end" ? 0 : Math.floor(kept * 0.45);
      return `${letters.slice(0, kept - end).join("")}…${end ? letters.slice(tail - end).join("") : ""}`;
    };
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.width(shortened(middle), face) <= width) low = middle;
      else high = middle;
    }
    const short = low ? shortened(low) : "";
    return cut === "end" && low ? `${wholeFigures(letters.slice(0, low).join(""), letters[low])}…` : short;
  }
}

/** The beginning of a text without a figure that its end would cut: "26.3 µ" and "12" of "128" are other figures. */
function wholeFigures(begin: string, next: string): string {
  const digits = /\d[\d.,]* ?$/.exec(begin);
  if (digits && /[\w.,%µ ]/.test(next)) return begin.slice(0, digits.index);
  // Of a unit one or two letters stand: "µ" of "µs", "GM" of "GMACs".
  const unit = /(\d[\d.,]*)?\d ?[^\s\d.,]{1,2}$/.exec(begin);
  return unit && /\w/.test(next) ? begin.slice(0, unit.index) : begin;
}

/** A measure that needs a canvas. */
export function canvasMeasure(): TextMeasure {
  const context = document.createElement("canvas").getContext("2d")!;
  let current = "";
  return new TextMeasure((text, wanted) => {
    if (current !== wanted) context.font = current = wanted;
    return context.measureText(text).width;
  });
}
