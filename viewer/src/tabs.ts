/** Tabs as the ARIA practices describe them: arrows move between them, one is in the tab order. */

import { el } from "./dom";

interface One<K extends string> {
  key: K;
  title: string;
  element: HTMLElement;
  /** Called when its content comes into sight. */
  shown?: () => void;
}

export class Tabs<K extends string> {
  readonly bar = el("div", { class: "tabs", role: "tablist", "aria-label": "Lists" });
  readonly body = el("div", { class: "tab-body" });
  current: K;
  private readonly buttons = new Map<K, HTMLButtonElement>();
  private readonly panels = new Map<K, HTMLElement>();

  constructor(private readonly all: One<K>[]) {
    this.current = all[0].key;
    for (const { key, title, element } of all) {
      const made = el(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${key}`,
          "aria-controls": `panel-${key}`,
          onclick: () => this.open(key),
        },
        title,
      );
      made.addEventListener("keydown", (event) => this.key(event));
      const panel = el(
        "div",
        { id: `panel-${key}`, class: "panel", role: "tabpanel", "aria-labelledby": `tab-${key}` },
        element,
      );
      this.buttons.set(key, made);
      this.panels.set(key, panel);
      this.bar.append(made);
      this.body.append(panel);
    }
    this.select(this.current);
  }

  private select(key: K): void {
    this.current = key;
    for (const [one, made] of this.buttons) {
      made.setAttribute("aria-selected", String(one === key));
      made.tabIndex = one === key ? 0 : -1;
      this.panels.get(one)!.hidden = one !== key;
    }
  }

  has(key: K): boolean {
    return this.buttons.has(key);
  }

  open(key: K): void {
    if (!this.buttons.has(key)) return;
    this.select(key);
    this.all.find((one) => one.key === key)?.shown?.();
  }

  focusInside(): void {
    const panel = this.panels.get(this.current)!;
    panel.querySelector<HTMLElement>('[tabindex="0"]:not([hidden])')?.focus();
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.all.findIndex((one) => one.key === this.current);
    const next = this.all[(at + step + this.all.length) % this.all.length].key;
    this.open(next);
    this.buttons.get(next)!.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
