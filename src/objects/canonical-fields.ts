import { assertPlainJson, canonicalJson } from './canonical-json.js';
import { freezeDeep } from './freeze-deep.js';

/** Canonical JSON of values that can never change again, so that the closed turns of a long chat are written once, not at every version. */
const written = new WeakMap<object, string>();

function sharedJson(value: object): string {
  const known = written.get(value);
  if (known !== undefined) return known;
  const text = canonicalJson(value);
  // Only what is frozen to its bottom may be remembered by identity.
  written.set(freezeDeep(value), text);
  return text;
}

function valueJson(value: unknown, name: string): string {
  if (!Array.isArray(value)) return canonicalJson(value);
  if (value.every((member) => typeof member === 'string')) {
    assertPlainJson(value, name);
    return JSON.stringify(value);
  }
  return `[${value.map((member) => (member !== null && typeof member === 'object' ? sharedJson(member) : canonicalJson(member))).join(',')}]`;
}

/**
 * The canonical JSON of type-specific fields: the bytes of `canonicalJson`, in time linear in what is new. Objects that stand in lists (turns) are
 * frozen and remembered. Throws DocumentError for whatever canonical JSON refuses.
 */
export function canonicalFields(fields: object): string {
  const members = Object.entries(fields).filter(([, value]) => value !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${valueJson(value, key)}`).join(',')}}`;
}
