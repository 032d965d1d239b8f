/** Writes figures as text. */

import type { Figure } from "./scene";

/** The names of the two models of a difference. */
export const SIDE_WORDS = ["old", "new"];

/** A figure as a number; the strings of the scene become NaN and infinities. */
export function numeric(figure: Figure): number {
  if (typeof figure === "number") return figure;
  return figure === "inf" ? Infinity : figure === "-inf" ? -Infinity : NaN;
}

/** 1234567 → "1,234,567". */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function plural(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : noun.endsWith("s") || noun.endsWith("ch") ? "es" : "s"}`;
}

/** Three significant digits, with an exponent where zeros would hide the size: 0.00123, 1.5e-7. */
export function short(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3)
    return value
      .toExponential(2)
      .replace(/\.?0+e/, "e")
      .replace("e+", "e");
  if (Number.isInteger(value)) return grouped(value);
  return String(Number(value.toPrecision(3)));
}

const BYTES = ["B", "kB", "MB", "GB", "TB"];
const SECONDS: [number, string][] = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];
const COUNTS: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A figure with its unit: bytes and seconds get the prefix that fits. */
export function measured(value: number, unit: string): string {
  if (!Number.isFinite(value)) return short(value);
  if (unit === "bytes") return inBytes(value);
  if (unit === "s") {
    const [scale, name] =
      SECONDS.find(([least]) => Math.abs(value) >= least) ?? (value === 0 ? SECONDS[0] : SECONDS[3]);
    return `${short(value / scale)} ${name}`;
  }
  if (unit === "MACs" || unit === "FLOPs" || unit === "parameters") {
    const [scale, name] = COUNTS.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
    return `${short(value / scale)} ${name}${unit}`;
  }
  return unit ? `${short(value)} ${unit}` : short(value);
}

export function inBytes(value: number): string {
  let left = value;
  let prefix = 0;
  while (Math.abs(left) >= 1000 && prefix < BYTES.length - 1) {
    left /= 1000;
    prefix += 1;
  }
  return `${short(left)} ${BYTES[prefix]}`;
}

/** A part of a whole in per cent: two digits, so that small parts are not 0. */
export function share(part: number, whole: number): string {
  if (!whole) return "0 %";
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.01 ? "< 0.01 %" : `${Number(percent.toPrecision(percent >= 10 ? 3 : 2))} %`;
}

/** Units whose figures may be added up. */
export function additive(unit: string): boolean {
  return ["s", "bytes", "MACs", "FLOPs", "parameters"].includes(unit);
}

/** Numbers of a text in as few digits as give the same float32: 0.10000000149011612 is 0.1. Other texts stay as they are. */
export function shortFloats(text: string): string {
  return /^[\d\s.,+\-einfa[\]()]+$/i.test(text) ? shortFloatsIn(text) : text;
}

/** The same in a sentence, such as "r0: 0.0 to 2.0317115783691406". */
function shortFloatsIn(text: string): string {
  if (text.length < LONG_NUMBER) return text;
  return text.replace(/(?<![\w.])-?\d+\.\d+(e[+-]?\d+)?(?![\w.])/gi, (written) => {
    const number = Number(written);
    if (written.length < LONG_NUMBER || Math.fround(number) !== number) return written;
    for (let digits = 1; digits <= FLOAT32_DIGITS; digits++) {
      const short = Number(number.toPrecision(digits));
      if (Math.fround(short) === number) return Math.abs(short) < 1e-4 ? short.toExponential() : String(short);
    }
    return written;
  });
}

/** Nine digits tell all numbers of float32 apart; longer texts than these digits and a point may be shortened. */
const FLOAT32_DIGITS = 9;
const LONG_NUMBER = 10;

/** A line of a report with figures as the page writes them: float32 in few digits, and "5.1 us" as "5.1 µs". */
export function asHere(text: string): string {
  return shortFloatsIn(text).replace(/(\d) us\b/g, "$1 µs");
}
