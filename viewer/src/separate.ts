/** Moves things of one row apart, as little as possible, without changing their order. */

/**
 * Positions with `position[i + 1] - position[i] >= half[i] + half[i + 1] + gap` that are nearest to `wanted`, which is
 * sorted: the least sum of weight × distance². Heavy things stay, light ones give way. Isotonic regression by pooling
 * adjacent violators: O(n).
 */
export function separate(
  wanted: ArrayLike<number>,
  half: ArrayLike<number>,
  weight: ArrayLike<number>,
  gap: number,
): Float64Array {
  const count = wanted.length;
  const offset = new Float64Array(count);
  for (let at = 1; at < count; at++) offset[at] = offset[at - 1] + half[at - 1] + half[at] + gap;
  // Blocks of things that touch each other: their mean, weight and number of things.
  const mean = new Float64Array(count);
  const heavy = new Float64Array(count);
  const size = new Int32Array(count);
  let blocks = 0;
  for (let at = 0; at < count; at++) {
    let [m, w, s] = [wanted[at] - offset[at], weight[at], 1];
    while (blocks > 0 && mean[blocks - 1] >= m) {
      blocks -= 1;
      m = (m * w + mean[blocks] * heavy[blocks]) / (w + heavy[blocks]);
      w += heavy[blocks];
      s += size[blocks];
    }
    [mean[blocks], heavy[blocks], size[blocks]] = [m, w, s];
    blocks += 1;
  }
  const position = new Float64Array(count);
  for (let block = 0, at = 0; block < blocks; block++) {
    for (let end = at + size[block]; at < end; at++) position[at] = mean[block] + offset[at];
  }
  return position;
}
