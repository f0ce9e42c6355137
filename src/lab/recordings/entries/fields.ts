import { isJsonObject, type JsonObject } from '../json/json-text.js';

/** A field's text; undefined for anything else and for no record. */
export function textAt(record: JsonObject | undefined, field: string): string | undefined {
  const value = record?.[field];
  return typeof value === 'string' ? value : undefined;
}

/** A field's text that can be an id: never empty. */
export function idAt(record: JsonObject | undefined, field: string): string | undefined {
  const value = record?.[field];
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A field's finite number. */
export function numberAt(record: JsonObject | undefined, field: string): number | undefined {
  const value = record?.[field];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A field's object. */
export function objectAt(record: JsonObject | undefined, field: string): JsonObject | undefined {
  const value = record?.[field];
  return isJsonObject(value) ? value : undefined;
}

/** A field's list, empty for anything else. */
export function listAt(record: JsonObject | undefined, field: string): readonly unknown[] {
  const value = record?.[field];
  return Array.isArray(value) ? value : [];
}

/** A field's list of objects; items that are none are left out. */
export function objectsAt(record: JsonObject | undefined, field: string): readonly JsonObject[] {
  return listAt(record, field).filter(isJsonObject);
}

/** A field's list of texts; items that are none are left out. */
export function textsAt(record: JsonObject | undefined, field: string): readonly string[] {
  return listAt(record, field).filter((item) => typeof item === 'string');
}

const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/;

/**
 * A moment out of an ISO text or a number of milliseconds; undefined for anything else. A text without a time zone is taken as UTC: it has to be the same
 * moment on every machine.
 */
export function momentOf(value: unknown): number | undefined {
  const moment = typeof value === 'string' ? Date.parse(WITHOUT_ZONE.test(value) ? `${value}Z` : value) : value;
  return typeof moment === 'number' && Number.isFinite(moment) ? moment : undefined;
}
