import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import type { Redactor } from '../projection/redaction-rules.js';
import type { ItemTable } from './item-table.js';
import type { Metadata } from './shapes.js';
import { withoutStatus } from './status-scan.js';

/** The session, its items and the redactor, from which a record is converted to a fact. */
export interface FactSource {
  readonly table: ItemTable;
  readonly redactor: Redactor;
  readonly surface: string;
  readonly session: string;
}

/**
 * Returns a word if the enumeration has it, else undefined. In that case the fact says `custom`,
 * and its metadata holds the word.
 */
export function oneOf<Word extends string>(words: readonly Word[], word: string | undefined): Word | undefined {
  return words.find((known) => known === word);
}

/** Returns a record's extra fields without redacted text, and its turn and step. */
export function metadataOf(
  { turn, seq, body }: ContextRecord,
  redactor: Redactor,
  more: Readonly<Record<string, Json | undefined>> = {},
): Metadata {
  const extra = 'extra' in body && isJsonObject(body.extra) ? body.extra : {};
  const said = redactor.without(withoutStatus(extra as Json)) as Metadata;
  return { ...said, turn_id: `turn:${turn}`, step_id: `step:${seq}`, ...(redactor.without(defined(more)) as Metadata) };
}
