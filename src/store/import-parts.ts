import * as z from 'zod';
import { canonicalJson } from '../objects/canonical-json.js';
import { type PartId, type SessionId, sessionId, sha256 } from '../objects/ids.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { partId } from './part-id.js';

const count = z.int().nonnegative();
const folder = z.strictObject({ from: z.string().min(1), to: z.string().min(1) });

const stateSchema = z.strictObject({
  /** Hash of the imported bundle. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  transactions: count,
  /** Local paths of recorded folders, and local ids of recorded filesystems. */
  folders: z.array(folder),
  filesystems: z.array(folder),
  /** Present while the import is running: the hashes of the texts in which the bundle is staged. */
  staged: z.array(z.string().transform(sha256)).optional(),
  /**
   * The import's line of file versions, which only its sessions see (decision F10). Absent if the
   * database had none of the files before the import.
   */
  line: z
    .strictObject({
      /** The session of the bundle. Its import wrote the whole line. */
      of: z.string().transform(sessionId),
      files: z.array(z.string()),
      /**
       * The term of the newest imported head, by session. A later term belongs to a local writer.
       */
      epochs: z.record(z.string(), count),
    })
    .optional(),
  /** The report on redacted content in the bundle's manifest. */
  redacted: z.json().optional(),
});

/** The state of a session's import (decision 0019). */
export type ImportState = z.output<typeof stateSchema>;

const transactionSchema = z.strictObject({
  /** The original transaction in the source database, and its transaction time. */
  tx: count,
  time: count,
  /** The ids that the transaction wrote, each with its version's valid time. */
  puts: z.array(z.tuple([z.string(), z.int()])),
});

/** An original transaction of an imported session. */
export type ImportedTransaction = z.output<typeof transactionSchema>;

/**
 * Part type of an import that is still running. Readers do not see the session until the type
 * becomes `import`.
 */
export const ARRIVING = 'import-arriving';

/**
 * Returns the id of a session's import state. With a transaction number, from 1, returns the id of
 * that transaction.
 */
export const importId = (session: SessionId, number = 0): PartId => partId('import', session, number);

/** Returns the part that holds an import's state. */
export function toImportPart(session: SessionId, state: ImportState, isWhole: boolean): StoredDocument {
  return { 'xt/id': importId(session), type: isWhole ? 'import' : ARRIVING, text: canonicalJson(state) };
}

/** Returns the part that holds one transaction of an import. */
export function toTransactionPart(
  session: SessionId,
  number: number,
  transaction: ImportedTransaction,
): StoredDocument {
  return { 'xt/id': importId(session, number), type: 'import', text: canonicalJson(transaction) };
}

function parsed<T>(part: StoredDocument, schema: z.ZodType<T>): T {
  try {
    return schema.parse(JSON.parse(String(part.text)));
  } catch (cause) {
    throw new StoreError('corrupt-part', `${part['xt/id']} is not a valid part of an import`, { cause });
  }
}

/**
 * Parses an import's state.
 *
 * @throws {StoreError} `corrupt-part`
 */
export const fromImportPart = (part: StoredDocument): ImportState => parsed(part, stateSchema);

/**
 * Parses one transaction of an import.
 *
 * @throws {StoreError} `corrupt-part`
 */
export const fromTransactionPart = (part: StoredDocument): ImportedTransaction => parsed(part, transactionSchema);
