import type { ObjectId } from '../objects/ids.js';
import { shortIds } from '../session/short-id.js';
import { renderedValue } from './rendered-value.js';

/** How an object is named in the context. */
export type NameOf = (id: ObjectId) => string;

/** Full ids, or with the short-id option the shortest prefixes that are unique among the given ids (decision D6); quoted where E3 asks for it. */
export function namesOf(ids: Iterable<ObjectId>, short: boolean): NameOf {
  if (!short) return renderedValue;
  const names = shortIds(ids);
  return (id) => renderedValue(names.get(id) ?? id);
}
