/** Steps through the rows of a list, such as the results of a search: from the last row back to the first. */

import { grouped } from "./words";

export interface Step {
  at: number;
  /** What is said where the step began again at the other end; "" elsewhere. */
  turned: string;
}

/** The row after `at`, or before it with a negative `by`; -1 stands for no row yet. `count` is not 0. */
export function stepped(at: number, by: number, count: number): Step {
  if (at < 0) return { at: by < 0 ? count - 1 : 0, turned: "" };
  if (count === 1) return { at: 0, turned: "the only one" };
  const next = at + by;
  if (next >= count) return { at: 0, turned: "from the start again" };
  if (next < 0) return { at: count - 1, turned: "from the end again" };
  return { at: next, turned: "" };
}

/** "Difference 3 of 12", and whether the list began again; `more` is said between the two. */
export function placeWords(noun: string, { at, turned }: Step, count: number, more = ""): string {
  return `${noun} ${grouped(at + 1)} of ${grouped(count)}${more}${turned ? `, ${turned}` : ""}`;
}
