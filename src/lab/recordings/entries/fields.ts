import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { type EntryOf, MESSAGE_ROLES } from '../neutral-session.js';

/** A field's text; undefined for any other value, and without a record. */
export function textAt(record: JsonObject | undefined, field: string): string | undefined {
  const value = record?.[field];
  return typeof value === 'string' ? value : undefined;
}

/** A field's id: a text that is not empty, or a number as text; undefined for any other value. */
export function idAt(record: JsonObject | undefined, field: string): string | undefined {
  const value = record?.[field];
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A field's finite number; undefined for any other value. */
export function numberAt(record: JsonObject | undefined, field: string): number | undefined {
  const value = record?.[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A field's object; undefined for any other value. */
export function objectAt(record: JsonObject | undefined, field: string): JsonObject | undefined {
  const value = record?.[field];
  return isJsonObject(value) ? value : undefined;
}

/** A field's list; empty for any other value. */
export function listAt(record: JsonObject | undefined, field: string): readonly unknown[] {
  const value = record?.[field];
  return Array.isArray(value) ? value : [];
}

/** The objects of a field's list. */
export function objectsAt(record: JsonObject | undefined, field: string): readonly JsonObject[] {
  return listAt(record, field).filter(isJsonObject);
}

/** The texts of a field's list. */
export function textsAt(record: JsonObject | undefined, field: string): readonly string[] {
  return listAt(record, field).filter((item) => typeof item === 'string');
}

const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/;

/**
 * A moment in milliseconds since 1970, from an ISO text or a number; undefined for any other value. A text without a time zone is taken as UTC, so that it is
 * the same moment on every machine.
 */
export function momentOf(value: unknown): number | undefined {
  const moment = typeof value === 'string' ? Date.parse(WITHOUT_ZONE.test(value) ? `${value}Z` : value) : value;
  return typeof moment === 'number' && Number.isFinite(moment) ? moment : undefined;
}

/** The fields that all entries of one record share. */
export type EntryCommon = Pick<EntryOf<'event'>, 'session' | 'place' | 'at' | 'native_id' | 'parent_id' | 'copied'>;

/** The fields that all entries of one record share: where it stands, its clock and its `id`, as far as the recording has them. */
export function entryCommon(
  where: { readonly session: string; readonly place: string },
  record: JsonObject,
  at: number | undefined,
): EntryCommon {
  return { session: where.session, place: where.place, at, native_id: idAt(record, 'id') };
}

type Message = EntryOf<'message'>;

/** The role that a record names; undefined for one that no entry has. */
export function roleAt(record: JsonObject | undefined): Message['role'] | undefined {
  return MESSAGE_ROLES.find((role) => role === record?.role);
}

/** The token counts of an answer, each from the field that the format names; undefined where the record has none of them. */
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
