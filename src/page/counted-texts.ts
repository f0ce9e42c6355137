import type { RequestView } from './wire.js';

/** The tokens of a request: the total, and those of each object whose text it has. */
export interface CountedTexts {
  readonly total: number;
  readonly byObject: ReadonlyMap<string, number>;
}

/** Sums the tokens of a request by object. Ignores lines that only name an object. */
export function countedTexts({ items }: Pick<RequestView, 'items'>): CountedTexts {
  const byObject = new Map<string, number>();
  let total = 0;
  for (const { object, form, tokens } of items) {
    total += tokens;
    if (object !== null && form !== 'line') byObject.set(object, (byObject.get(object) ?? 0) + tokens);
  }
  return { total, byObject };
}
