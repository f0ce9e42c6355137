import type { RequestView } from './wire.js';

/** The tokens of a request's texts: the total, and those of each object whose text it has. */
export interface CountedTexts {
  readonly total: number;
  readonly byObject: ReadonlyMap<string, number>;
}

/**
 * Sums the tokens of a request by object. Ignores lines that only name an object, and tokens that
 * the transcript does not explain.
 */
export function countedTexts({ items }: Pick<RequestView, 'items'>): CountedTexts {
  const byObject = new Map<string, number>();
  let total = 0;
  for (const { object, section, form, tokens } of items) {
    if (section === 'untold') continue;
    total += tokens;
    if (object !== null && form !== 'line') byObject.set(object, (byObject.get(object) ?? 0) + tokens);
  }
  return { total, byObject };
}
