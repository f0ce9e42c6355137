/** An item of a treemap. */
export interface Weighed {
  readonly size: number;
}

/** An item's rectangle, in the unit of the map's width. */
export interface Tile<T> {
  readonly of: T;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const worst = (row: readonly number[], side: number): number => {
  const sum = row.reduce((a, b) => a + b, 0);
  const [most, least] = [Math.max(...row), Math.min(...row)];
  return Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
};

/**
 * Lays items out in a rectangle with areas in proportion to their sizes, as square as possible.
 * Leaves out items without a size.
 */
export function treemap<T extends Weighed>(things: readonly T[], width: number, height: number): readonly Tile<T>[] {
  const sorted = things.filter(({ size }) => size > 0).toSorted((a, b) => b.size - a.size);
  const total = sorted.reduce((sum, { size }) => sum + size, 0);
  const scale = total === 0 ? 0 : (width * height) / total;
  const tiles: Tile<T>[] = [];
  let [x, y, w, h] = [0, 0, width, height];
  for (let i = 0; i < sorted.length; ) {
    const side = Math.min(w, h);
    const areas: number[] = [];
    let end = i;
    for (; end < sorted.length; end += 1) {
      const next = [...areas, (sorted[end]?.size ?? 0) * scale];
      if (areas.length > 0 && worst(next, side) > worst(areas, side)) break;
      areas.push(next.at(-1) ?? 0);
    }
    const sum = areas.reduce((a, b) => a + b, 0);
    const thick = side === 0 ? 0 : sum / side;
    let along = 0;
    for (const [n, area] of areas.entries()) {
      const long = thick === 0 ? 0 : area / thick;
      const of = sorted[i + n] as T;
      tiles.push(
        w >= h
          ? { of, x, y: y + along, width: thick, height: long }
          : { of, x: x + along, y, width: long, height: thick },
      );
      along += long;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    i = end;
  }
  return tiles;
}
