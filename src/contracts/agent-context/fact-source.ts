import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import type { Redactor } from '../projection/redaction-rules.js';
import type { ItemTable } from './item-table.js';
import type { Metadata } from './shapes.js';
import { withoutStatus } from './status-scan.js';

/** The inputs of converting a record to a fact: the session, its items and their redaction. */
export interface FactSource {
  readonly table: ItemTable;
  readonly redactor: Redactor;
  readonly surface: string;
  readonly session: string;
}

/**
 * Returns a word of an enumeration. Undefined for any other word: the fact then says `custom`, and
 * its metadata holds the original word.
 */
export function oneOf<Word extends string>(words: readonly Word[], word: string | undefined): Word | undefined {
  return words.find((known) => known === word);
}

/**
 * Returns a record's own fields beside the common ones, without redacted text, and its position in
 * the session.
 */
export function metadataOf(
  { turn, seq, body }: ContextRecord,
  redactor: Redactor,
  more: Readonly<Record<string, Json | undefined>> = {},
): Metadata {
  const extra = 'extra' in body && isJsonObject(body.extra) ? body.extra : {};
  const said = redactor.without(withoutStatus(extra as Json)) as Metadata;
  return { ...said, turn_id: `turn:${turn}`, step_id: `step:${seq}`, ...(redactor.without(defined(more)) as Metadata) };
}
