/**
 * Returns the number of edits (insert, delete, replace, swap of neighbours) between two words.
 * Stops counting above `most`.
 */
export function editDistance(left: string, right: string, most = 8): number {
  if (Math.abs(left.length - right.length) > most) return most + 1;
  let before: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1];
      let best = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      if (swapped) best = Math.min(best, (before[column - 2] ?? 0) + 1);
      current.push(best);
    }
    if (Math.min(...current) > most) return most + 1;
    before = previous;
    previous = current;
  }
  return previous[right.length] ?? 0;
}

/** Returns the maximum edit distance up to which a name is suggested. */
const reach = (wanted: string): number => Math.max(1, Math.min(6, Math.floor(wanted.length / 3)));

/** Normalises a name for comparison: ignores case and Unicode composition (NFC, NFD). */
const compared = (name: string): string => name.normalize('NFC').toLowerCase();

/**
 * Returns the names most similar to `wanted`, best first and never `wanted` itself. Similar names
 * have a near spelling, or one contains the other.
 */
export function similarNames(wanted: string, names: Iterable<string>, most = 3): readonly string[] {
  const target = compared(wanted);
  const scored: { readonly name: string; readonly score: number }[] = [];
  for (const name of names) {
    if (name === wanted) continue;
    const candidate = compared(name);
    const distance = editDistance(target, candidate, reach(target));
    if (distance <= reach(target)) scored.push({ name, score: distance });
    else if (
      target.length >= 3 &&
      candidate.length >= 3 &&
      (candidate.includes(target) || target.includes(candidate))
    ) {
      scored.push({ name, score: reach(target) + 1 + Math.abs(candidate.length - target.length) / 100 });
    }
  }
  scored.sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1));
  return scored.slice(0, most).map(({ name }) => name);
}

const nameIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/**
 * Returns the paths whose file names are most similar to that of `wanted`, equal names first. Never
 * returns `wanted` itself.
 */
export function similarPaths(wanted: string, paths: Iterable<string>, most = 3): readonly string[] {
  const byName = new Map<string, string[]>();
  for (const path of paths) {
    if (path === wanted) continue;
    const same = byName.get(nameIn(path));
    if (same === undefined) byName.set(nameIn(path), [path]);
    else same.push(path);
  }
  const name = nameIn(wanted);
  return [name, ...similarNames(name, byName.keys(), most)].flatMap((near) => byName.get(near) ?? []).slice(0, most);
}
