import * as z from 'zod';
import { canonicalJson } from '../objects/canonical-json.js';
import { type PartId, type SessionId, sessionId, sha256 } from '../objects/ids.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { partId } from './part-id.js';

const count = z.int().nonnegative();
const folder = z.strictObject({ from: z.string().min(1), to: z.string().min(1) });

const stateSchema = z.strictObject({
  /** Of the bundle that is taken in. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  transactions: count,
  /** Where recorded folders and filesystems lie here. */
  folders: z.array(folder),
  filesystems: z.array(folder),
  /** As long as it is under way: the hashes of the texts in which the rest of it was put away. */
  staged: z.array(z.string().transform(sha256)).optional(),
  /** What an import keeps to its sessions (decision F10); absent where nothing of it was here before. */
  line: z
    .strictObject({
      /** The session of the bundle, whose import brought all of it. */
      of: z.string().transform(sessionId),
      files: z.array(z.string()),
      /** By session, the epoch of the newest head that was brought: a later one is of a writer here. */
      epochs: z.record(z.string(), count),
    })
    .optional(),
  /** What its manifest says of what was masked in it. */
  redacted: z.json().optional(),
});

/** What is known of the import of a session (decision 0019). */
export type ImportState = z.output<typeof stateSchema>;

const transactionSchema = z.strictObject({
  /** The transaction in the database that it was first written to, and when that learned it. */
  tx: count,
  time: count,
  /** Ids with the valid times of the versions that it wrote. */
  puts: z.array(z.tuple([z.string(), z.int()])),
});

/** What one transaction of an imported session was, where it was first written. */
export type ImportedTransaction = z.output<typeof transactionSchema>;

/** The type of the part that says that a session is still being imported: it is not there for anybody until its type is `import`. */
export const ARRIVING = 'import-arriving';

/** The id of what is known of the import of a session; with the number of one of its transactions, from 1, of that one. */
export const importId = (session: SessionId, number = 0): PartId => partId('import', session, number);

/** The part of an import's state. */
export function toImportPart(session: SessionId, state: ImportState, isWhole: boolean): StoredDocument {
  return { 'xt/id': importId(session), type: isWhole ? 'import' : ARRIVING, text: canonicalJson(state) };
}

/** The part of one of its transactions. */
export function toTransactionPart(session: SessionId, number: number, transaction: ImportedTransaction): StoredDocument {
  return { 'xt/id': importId(session, number), type: 'import', text: canonicalJson(transaction) };
}

function parsed<T>(part: StoredDocument, schema: z.ZodType<T>): T {
  try {
    return schema.parse(JSON.parse(String(part.text)));
  } catch (cause) {
    throw new StoreError('corrupt-part', `${part['xt/id']} is not what an import writes`, { cause });
  }
}

/** Reads an import's state back. @throws {StoreError} `corrupt-part` */
export const fromImportPart = (part: StoredDocument): ImportState => parsed(part, stateSchema);

/** Reads one of its transactions back. @throws {StoreError} `corrupt-part` */
export const fromTransactionPart = (part: StoredDocument): ImportedTransaction => parsed(part, transactionSchema);
