import type { Packed } from './server/page-format.js';

/** Unpacks a value. `nodeOf` returns a deduplicated part; a missing part becomes undefined. */
export function unpackedValue(packed: Packed, nodeOf: (node: number) => Packed | undefined): unknown {
  const of = (node: number): unknown => {
    const known = nodeOf(node);
    return known === undefined ? undefined : unpackedValue(known, nodeOf);
  };
  const made = (one: Packed): unknown => unpackedValue(one, nodeOf);
  if (typeof packed !== 'object' || packed === null) return packed;
  if (Array.isArray(packed)) return packed.map(made);
  const { $: what } = packed as { readonly $?: unknown };
  if (what === undefined)
    return Object.fromEntries(Object.entries(packed).map(([name, one]) => [name, made(one as Packed)]));
  if (typeof what === 'number') return of(what);
  if (Array.isArray(what)) return what.map(of);
  const { t, l, o } = what as {
    readonly t?: readonly number[];
    readonly l?: readonly number[];
    readonly o?: readonly [string, Packed][];
  };
  if (t !== undefined) return t.map(of).join('');
  if (l !== undefined) return l.flatMap((node) => of(node) as readonly unknown[]);
  return Object.fromEntries((o ?? []).map(([name, one]) => [name, made(one)]));
}
