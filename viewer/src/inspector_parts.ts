/** Makes the parts of the inspector: sections, tables of facts, types and constants. */

import { el } from "./dom";
import { histogram } from "./histogram";
import type { Side } from "./side";
import { inBytes, numeric, short } from "./words";

export type Part = Node | string | null;

/** A titled part; null if nothing is in it. */
export function section(title: string, parts: Part[]): HTMLElement | null {
  const shown = parts.filter(Boolean);
  return shown.length ? el("section", {}, el("h3", {}, title), ...shown) : null;
}

/** Names and values; null if no value is known. */
export function facts(rows: [string, string][], kind = ""): HTMLElement | null {
  const shown = rows.filter(([, value]) => value);
  if (!shown.length) return null;
  const list = el("dl", { class: `facts ${kind}` });
  for (const [name, value] of shown) list.append(el("dt", {}, name), el("dd", {}, value));
  return list;
}

/** The type of a value; symbolic dimensions have a colour of their own. */
export function typeOf(side: Side, value: number): Part {
  const parts = side.graph.type(value);
  if (!parts)
    return el("span", { class: "type dim" }, side.graph.isOfFunction(value) ? "type of the call" : "type unknown");
  if (!parts.dims) return el("span", { class: "type" }, parts.dtype);
  const dims = parts.dims.flatMap((dim, at): Part[] => [
    at ? ", " : "",
    el("span", { class: dim.symbolic ? "symbolic" : "" }, dim.text),
  ]);
  return el("span", { class: "type" }, parts.dtype, "[", ...dims, "]");
}

/** The facts on a constant: its size, and its values or their figures and histogram; null for other values. */
export function constantOf(side: Side, value: number): Part {
  const constant = side.graph.model.constants[value];
  if (!constant) return null;
  const { figures } = constant;
  const rows = figures
    ? Object.entries(figures).map(([name, figure]): [string, string] => [
        name,
        name === "zeros" ? `${short(100 * numeric(figure))} %` : short(numeric(figure)),
      ])
    : [];
  const range = figures
    ? `from ${short(numeric(figures.min ?? "nan"))} to ${short(numeric(figures.max ?? "nan"))}`
    : "";
  return el(
    "div",
    { class: "constant" },
    el(
      "div",
      { class: "dim" },
      [inBytes(constant.bytes), constant.form, constant.file && `in ${constant.file}`].filter(Boolean).join(", "),
    ),
    constant.aliases?.length ? el("div", { class: "dim" }, `from ${constant.aliases.join(", ")}`) : null,
    constant.text ? el("code", {}, constant.text) : null,
    constant.histogram.length
      ? histogram(constant.histogram, `Values of ${side.graph.valueName(value)} ${range}`)
      : null,
    constant.histogram.length && figures
      ? el(
          "div",
          { class: "ends-of-scale dim", "aria-hidden": "true" },
          el("span", {}, short(numeric(figures.min))),
          el("span", {}, short(numeric(figures.max))),
        )
      : null,
    rows.length ? facts(rows, "small") : null,
  );
}
