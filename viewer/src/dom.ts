/** Makes elements. Every text becomes a text node: nothing of a model is ever read as HTML. */

type Child = Node | string | null | undefined | false;
type Properties = Record<string, string | number | boolean | ((event: Event) => void) | null | undefined>;

/** An element with attributes (`class`, `role`, …), listeners (`onclick`, …) and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  append(made, children);
  return made;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children)
    if (child) parent.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
}

export function replace(parent: HTMLElement, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** A button with a visible or a spoken name. `key` is shown in its tooltip. */
export function button(
  text: string | Node,
  act: () => void,
  how: { title?: string; key?: string; class?: string } = {},
): HTMLButtonElement {
  const title = how.key ? `${how.title ?? String(text)} (${how.key})` : how.title;
  const properties = { type: "button", class: how.class, title, "aria-label": how.title, onclick: () => act() };
  return el("button", properties, text);
}

/** Sets a style that depends on data. Inline style attributes are refused by the content security policy; this isn't one. */
export function style(element: HTMLElement | SVGElement, name: string, value: string): void {
  element.style.setProperty(name, value);
}
