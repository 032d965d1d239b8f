/** The field of the search in the header, and the count of results beside it. */

import { el } from "./dom";
import type { Results } from "./results";
import { grouped } from "./words";

/** The pause in typing, in milliseconds, before the search begins. */
const TYPING = 140;

/** The parts of the page that the search uses. */
export interface Searching {
  /** Shows the list of results. */
  open(): void;
  /** Goes to the next result, or the one before. */
  step(by: number): void;
  /** Gives the keys back to the picture. */
  leave(): void;
  say(text: string): void;
}

export class SearchField {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly found = el("span", { class: "found", "aria-live": "polite" });
  private typing = 0;
  /** The query whose results are listed: what was typed since waits for a moment of rest, or for Enter. */
  private searched = "";

  constructor(
    private readonly results: Results,
    private readonly page: Searching,
  ) {
    this.input = this.makeInput();
    this.element = el("div", { class: "searching", role: "search" }, this.input, this.found);
  }

  private makeInput(): HTMLInputElement {
    const input = el("input", {
      type: "search",
      placeholder: "Search  /",
      "aria-label": "Search for names, operators, shapes, attributes, modules, source lines",
      spellcheck: "false",
      autocomplete: "off",
    });
    input.addEventListener("input", () => {
      window.clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.search(), TYPING);
    });
    input.addEventListener("keydown", (event) => this.key(event));
    return input;
  }

  /** Enter goes to the first result and gives the keys to the picture, where n goes on. Escape clears. */
  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.clear();
      this.page.leave();
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    window.clearTimeout(this.typing);
    if (this.input.value !== this.searched || this.results.position < 0) this.search();
    if (this.isEmpty) return;
    this.page.step(event.shiftKey ? -1 : 1);
    if (this.results.count) this.page.leave();
  }

  /** Forgets the query and its results. Returns whether there was one. */
  clear(): boolean {
    window.clearTimeout(this.typing);
    const was = !this.isEmpty;
    this.input.value = "";
    if (was) this.search();
    return was;
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  searchFor(text: string): void {
    this.input.value = text;
    this.search();
  }

  private get isEmpty(): boolean {
    return !this.input.value.trim();
  }

  private search(): void {
    this.searched = this.input.value;
    this.results.query(this.searched);
    if (!this.isEmpty) this.page.open();
    this.page.say(this.isEmpty || this.results.count ? "" : "Nothing found");
  }

  /** Shows how many results are listed, and which of them was gone to. */
  showCount(): void {
    const { count, position } = this.results;
    const text = position >= 0 ? `${grouped(position + 1)} of ${grouped(count)}` : grouped(count);
    this.found.textContent = this.isEmpty ? "" : text;
  }
}
