import { isJsonObject } from './json/json-text.js';

/** Told each string that was repaired. */
type OnRepair = (before: string) => void;

/**
 * The same JSON value with every lone surrogate replaced by U+FFFD, in keys too: a lone surrogate is in no UTF-8 and would be another text after each
 * journey. Fields that are undefined are left out. The value itself comes back where nothing was to do.
 */
export function toWellFormedValue<T>(value: T, onRepair: OnRepair): T;
export function toWellFormedValue(value: unknown, onRepair: OnRepair): unknown {
  if (typeof value === 'string') {
    if (value.isWellFormed()) return value;
    onRepair(value);
    return value.toWellFormed();
  }
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => toWellFormedValue(item, onRepair));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isJsonObject(value)) return value;
  const before = Object.entries(value);
  const after = before
    .filter(([, item]) => item !== undefined)
    .map(([key, item]): readonly [string, unknown] => [toWellFormedValue(key, onRepair), toWellFormedValue(item, onRepair)]);
  const same = after.length === before.length;
  return !same || after.some(([key, item], index) => key !== before[index]?.[0] || item !== before[index]?.[1])
    ? Object.fromEntries(after)
    : value;
}
