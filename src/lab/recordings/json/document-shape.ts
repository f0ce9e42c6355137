/** A place in a JSON document: keys and positions from its top. */
export type DocumentPath = readonly (string | number)[];

/** Which values of a JSON document are read. */
export interface DocumentShape {
  /** The values that are read one by one, as `messages.*` or `*.traj.*`; `*` stands for any position of a list; an empty text is the document itself. */
  readonly items: readonly string[];
  /** What is left out of them, as `trajectory.*.query`. */
  readonly skip?: readonly string[];
}

type Pattern = readonly string[];

const patternOf = (text: string): Pattern => (text === '' ? [] : text.split('.'));

const fits = (step: string | number | undefined, part: string | undefined): boolean =>
  part === '*' ? typeof step === 'number' : String(step) === part;

/** What is done with a value. */
export type ValueUse = 'item' | 'skip' | 'enter';

/** Tells by its path what is done with a value: outside of an item, and inside of one. */
export interface ShapeMatcher {
  outside(path: DocumentPath): ValueUse;
  skipsInside(path: DocumentPath): boolean;
}

/** A shape made ready for looking at many paths. */
export function createMatcher(shape: DocumentShape): ShapeMatcher {
  const items = shape.items.map(patternOf);
  const skips = (shape.skip ?? []).map(patternOf);
  const same = (path: DocumentPath, pattern: Pattern): boolean =>
    path.length === pattern.length && path.every((step, index) => fits(step, pattern[index]));
  const leadsTo = (path: DocumentPath, pattern: Pattern): boolean =>
    path.length < pattern.length && path.every((step, index) => fits(step, pattern[index]));
  return {
    outside(path) {
      if (items.some((pattern) => same(path, pattern))) return 'item';
      return items.some((pattern) => leadsTo(path, pattern)) ? 'enter' : 'skip';
    },
    skipsInside: (path) => skips.some((pattern) => same(path, pattern)),
  };
}

/** A path as people write it: `history[12]`, `[3].traj[5]`. */
export function placeOf(path: DocumentPath): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`)).join('');
}
