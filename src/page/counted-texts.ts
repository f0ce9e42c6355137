import type { RequestView } from './wire.js';

/** The tokens of a request: in all, and of each object whose text it has. */
export interface CountedTexts {
  readonly total: number;
  readonly byObject: ReadonlyMap<string, number>;
}

/** Adds the tokens of a request up by object. A line that only names an object is no text of it. */
export function countedTexts({ items }: Pick<RequestView, 'items'>): CountedTexts {
  const byObject = new Map<string, number>();
  let total = 0;
  for (const { object, form, tokens } of items) {
    total += tokens;
    if (object !== null && form !== 'line') byObject.set(object, (byObject.get(object) ?? 0) + tokens);
  }
  return { total, byObject };
}
