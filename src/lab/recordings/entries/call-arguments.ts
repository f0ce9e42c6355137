import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject, parseJson } from '../json/json-text.js';
import { excerpt } from './excerpt.js';

/**
 * The arguments of a call, given as an object or as JSON text. Text that is no JSON object, and any other value, comes as `{input: …}` and is told as
 * `unparsed-arguments`; nothing and an empty text are no arguments.
 */
export function callArguments(given: unknown, place: string, onLoss: OnLoss): JsonObject {
  if (given === undefined || given === null || given === '') return {};
  if (isJsonObject(given)) return given;
  const parsed = typeof given === 'string' ? parseJson(given) : undefined;
  if (isJsonObject(parsed)) return parsed;
  const shown = typeof given === 'string' ? given : JSON.stringify(given);
  onLoss({ reason: 'unparsed-arguments', place, detail: `no JSON object: ${excerpt(shown)}` });
  return { input: given };
}
