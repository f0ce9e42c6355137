import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { type EntryOf, MESSAGE_ROLES } from '../neutral-session.js';

/** Returns a field's text. Undefined if the record is missing or the value is not a text. */
export function textAt(record: JsonObject | undefined, field: string): string | undefined {
  const value = record?.[field];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Returns a field's value as an id: a non-empty text, or a number converted to text. Undefined for
 * other values.
 */
export function idAt(record: JsonObject | undefined, field: string): string | undefined {
  const value = record?.[field];
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns a field's finite number. Undefined for other values. */
export function numberAt(record: JsonObject | undefined, field: string): number | undefined {
  const value = record?.[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** Returns a field's object. Undefined for other values. */
export function objectAt(record: JsonObject | undefined, field: string): JsonObject | undefined {
  const value = record?.[field];
  return isJsonObject(value) ? value : undefined;
}

/** Returns a field's list. Empty for other values. */
export function listAt(record: JsonObject | undefined, field: string): readonly unknown[] {
  const value = record?.[field];
  return Array.isArray(value) ? value : [];
}

/** Returns the objects in a field's list. */
export function objectsAt(record: JsonObject | undefined, field: string): readonly JsonObject[] {
  return listAt(record, field).filter(isJsonObject);
}

/** Returns the texts in a field's list. */
export function textsAt(record: JsonObject | undefined, field: string): readonly string[] {
  return listAt(record, field).filter((item) => typeof item === 'string');
}

const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/;

/**
 * Returns a time, given as ISO text or as a number, in milliseconds since 1970. Undefined for other
 * values. A text without a time zone is read as UTC, so that the result is the same on every
 * machine.
 */
export function momentOf(value: unknown): number | undefined {
  const moment = typeof value === 'string' ? Date.parse(WITHOUT_ZONE.test(value) ? `${value}Z` : value) : value;
  return typeof moment === 'number' && Number.isFinite(moment) ? moment : undefined;
}

/** The fields that all entries of one record share. */
export type EntryCommon = Pick<EntryOf<'event'>, 'session' | 'place' | 'at' | 'native_id' | 'parent_id' | 'copied'>;

/**
 * Returns the fields that all entries of a record share: place, time and id, if they are recorded.
 */
export function entryCommon(
  where: { readonly session: string; readonly place: string },
  record: JsonObject,
  at: number | undefined,
): EntryCommon {
  return { session: where.session, place: where.place, at, native_id: idAt(record, 'id') };
}

type Message = EntryOf<'message'>;

/** Returns the role of a record. Undefined if no entry can have that role. */
export function roleAt(record: JsonObject | undefined): Message['role'] | undefined {
  return MESSAGE_ROLES.find((role) => role === record?.role);
}

/**
 * Returns the token counts of an answer. `names` has the format's names of the fields. Undefined if
 * there are no counts.
 */
export function usageAt(
  record: JsonObject | undefined,
  names: Readonly<Partial<Record<keyof NonNullable<Message['usage']>, string>>>,
): Message['usage'] {
  const counts = Object.entries(names).flatMap(([count, field]) => {
    const value = numberAt(record, field);
    return value === undefined ? [] : [[count, value]];
  });
  return counts.length === 0 ? undefined : Object.fromEntries(counts);
}
