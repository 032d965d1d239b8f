/** Finds names similar to a given name, for addresses made for another version of the model. */

/** So many names are offered, and only those at least so alike, from 0 to 1. Choices. */
const MOST = 3;
const LEAST_ALIKE = 0.45;

/** The pairs of letters of a name, without regard to case and to what stands between its words. */
function pairs(name: string): Map<string, number> {
  const plain = ` ${name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()} `;
  const found = new Map<string, number>();
  for (let at = 0; at + 1 < plain.length; at++) {
    const pair = plain.slice(at, at + 2);
    found.set(pair, (found.get(pair) ?? 0) + 1);
  }
  return found;
}

/** How many pairs of letters two names have in common, as a share of all of them (Dice's coefficient). */
function alike(one: Map<string, number>, other: Map<string, number>): number {
  let common = 0;
  let all = 0;
  for (const [pair, count] of one) {
    common += 2 * Math.min(count, other.get(pair) ?? 0);
    all += count;
  }
  for (const count of other.values()) all += count;
  return all ? common / all : 0;
}

/** The names that are most like the wanted one, the most alike first. */
export function nearNames(wanted: string, names: Iterable<string>): string[] {
  const ours = pairs(wanted);
  const found: { name: string; share: number }[] = [];
  for (const name of new Set(names)) {
    if (!name) continue;
    const share = alike(ours, pairs(name));
    if (share >= LEAST_ALIKE) found.push({ name, share });
  }
  found.sort((a, b) => b.share - a.share || (a.name < b.name ? -1 : 1));
  return found.slice(0, MOST).map(({ name }) => name);
}
