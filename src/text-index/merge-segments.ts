import { BUCKETS } from './grams.js';
import { decodeGroup, encodeGroup, GROUP } from './postings.js';
import type { Segment, SegmentParts } from './segment-file.js';

function joined<T extends Float64Array | Uint32Array | Uint8Array>(make: new (length: number) => T, all: T[]): T {
  const whole = new make(all.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const one of all) {
    whole.set(one, at);
    at += one.length;
  }
  return whole;
}

function* linesOf(segments: readonly Segment[]): Generator<string> {
  for (const segment of segments) yield* segment.lines();
}

/** Yields the merged groups of all segments. Blocks follow those of earlier segments. */
function* groupsOf(segments: readonly Segment[]): Generator<Buffer> {
  const shifts = starts(segments.map(({ owners }) => owners.length));
  const read = segments.map((segment) => segment.groups());
  for (let group = 0; group < BUCKETS / GROUP; group += 1) {
    const parts = new Map<number, Uint32Array[]>();
    for (const [i, groups] of read.entries())
      for (const { bucket, blocks } of decodeGroup(groups.next().value ?? Buffer.alloc(0))) {
        const shift = shifts[i] ?? 0;
        const list = parts.get(bucket);
        const shifted = shift === 0 ? blocks : blocks.map((block) => block + shift);
        if (list === undefined) parts.set(bucket, [shifted]);
        else list.push(shifted);
      }
    const merged = [...parts]
      .sort(([a], [b]) => a - b)
      .map(([bucket, lists]) => ({ bucket, blocks: joined(Uint32Array, lists) }));
    yield merged.length === 0 ? Buffer.alloc(0) : encodeGroup(merged);
  }
}

/** Returns the offset at which each part begins when the parts are concatenated. */
const starts = (sizes: readonly number[]): readonly number[] =>
  sizes.map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size, 0));

/** Returns the parts of one segment that replaces several. Keeps the order of the segments. */
export function mergedParts(segments: readonly Segment[], units: number): SegmentParts {
  // Each text has at least one block, so the blocks bound the numbers of texts.
  const shifts = starts(segments.map(({ owners }) => owners.reduce((most, text) => Math.max(most, text + 1), 0)));
  const shifted = (of: (segment: Segment) => Uint32Array): Uint32Array =>
    joined(
      Uint32Array,
      segments.map((segment, i) => of(segment).map((text) => text + (shifts[i] ?? 0))),
    );
  return {
    units,
    lines: linesOf(segments),
    ats: joined(
      Float64Array,
      segments.map(({ ats }) => ats),
    ),
    kinds: joined(
      Uint8Array,
      segments.map(({ kinds }) => kinds),
    ),
    texts: shifted(({ texts }) => texts),
    owners: shifted(({ owners }) => owners),
    groups: groupsOf(segments),
  };
}
