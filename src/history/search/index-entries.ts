import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { marksOf } from '../../store/head.js';
import { fromStepPart, messagePartHash } from '../../store/step-part.js';
import type { IndexEntry } from '../../text-index/segment-draft.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { LoggedTransaction } from '../../xtdb/tx-log.js';
import type { SearchedKind } from './kinds.js';
import { textHashes, textOfVersion } from './searched-texts.js';

/** The kinds of entries by their number in an index. */
export const ENTRY_KINDS = ['message', 'toolcall', 'file', 'system_prompt', 'fork'] as const satisfies readonly (
  | SearchedKind
  | 'fork'
)[];

/**
 * A text. If it is stored under its hash, a search reads the text first, and its step or version
 * only on a match.
 */
interface StoredText {
  /** The hash under which the text is stored. Absent if the text is in its document. */
  readonly hash?: Sha256;
  /** The hash of a content that is in the document of its version. */
  readonly inline?: Sha256;
}

/** A step with a message or with changes of the sets. */
export interface StepLine extends StoredText {
  readonly session: SessionId;
  readonly seq: number;
}

/** A version with a text. */
export interface VersionLine extends StoredText {
  readonly object: ObjectId;
  readonly validTime: number;
  readonly txId: number;
  /** The source of a file, or the tool of a call. */
  readonly source?: unknown;
  readonly tool?: unknown;
}

/** A session that shares the steps of another session up to `seq`. */
export interface ForkLine {
  readonly fork: SessionId;
  readonly seq: number;
}

/** The keys by which entries are found without a text. */
export const KEYS = {
  /** Steps that change an object in a session's sets. */
  known: (id: string): string => `k:${id}`,
  /** Forks of a session. */
  forks: (session: string): string => `f:${session}`,
};

const kindOf = (kind: (typeof ENTRY_KINDS)[number]): number => ENTRY_KINDS.indexOf(kind);
const isVersion = (type: unknown): type is 'toolcall' | 'file' | 'system_prompt' =>
  type === 'toolcall' || type === 'file' || type === 'system_prompt';

/** A document that becomes entries, before its long texts are read. */
interface Indexed {
  readonly hashes: readonly Sha256[];
  entries(texts: ReadonlyMap<Sha256, string>): readonly IndexEntry[];
}

function stepEntry(document: StoredDocument): Indexed | undefined {
  const hash = messagePartHash(document);
  const { session, seq, at, message, changes }: Step = fromStepPart(document, '');
  const keys = [...new Set(Object.values(changes).flat())].map((id) => KEYS.known(String(id)));
  if (message === undefined && keys.length === 0) return undefined;
  const line: StepLine = { session, seq };
  return {
    hashes: hash === undefined ? [] : [hash],
    entries: (texts) => {
      const text = hash === undefined ? message?.text : texts.get(hash);
      return [{ line: { ...line, ...defined({ hash }) }, at, kind: kindOf('message'), keys, text }];
    },
  };
}

function versionEntries(document: StoredDocument, at: { readonly validTime: Date; readonly txId: number }): Indexed {
  const { type, source, tool } = document;
  const marks = marksOf(document);
  // Equal outputs share their blocks in the index. Arguments rarely repeat, so they are separate
  // entries.
  const parts = type === 'toolcall' ? (['content', 'arguments'] as const) : (['content'] as const);
  const versions = parts.map((part) => ({ document, marks, part }));
  const validTime = at.validTime.getTime();
  const named = type === 'file' ? { source } : type === 'toolcall' ? { tool } : {};
  const line: VersionLine = { object: document['xt/id'] as ObjectId, validTime, txId: at.txId, ...named };
  return {
    hashes: versions.flatMap(textHashes),
    entries: (texts) =>
      versions.flatMap((version) => {
        const text = textOfVersion(version, texts);
        if (text === undefined || text === '') return [];
        const stored = textHashes(version);
        const hash = version.part === 'arguments' ? undefined : (stored[0] ?? document.content_hash);
        const apart = stored.find((one) => texts.has(one));
        const inline = version.part === 'content' && apart === undefined ? document.content_hash : undefined;
        return {
          line: { ...line, ...defined({ hash: apart, inline }) },
          at: validTime,
          kind: kindOf(type as 'file'),
          keys: [],
          text,
          ...defined({ hash }),
        } as IndexEntry;
      }),
  };
}

function forkEntry(document: StoredDocument): Indexed | undefined {
  const { parent } = marksOf(document);
  if (parent === undefined) return undefined;
  const line: ForkLine = { fork: String(document.session_id) as SessionId, seq: parent.seq };
  return {
    hashes: [],
    entries: () => [{ line, at: 0, kind: kindOf('fork'), keys: [KEYS.forks(parent.session)] }],
  };
}

function indexed(
  document: StoredDocument,
  at: { readonly validTime: Date; readonly txId: number },
): Indexed | undefined {
  const { type } = document;
  if (type === 'step') return stepEntry(document);
  if (type === 'line') return versionEntries(JSON.parse(String(document.text)) as StoredDocument, at);
  if (type === 'session') return forkEntry(document);
  return isVersion(type) ? versionEntries(document, at) : undefined;
}

/** Number of chunks that one request reads. */
const TEXTS_AT_ONCE = 256;

/** Returns the entries of some transactions. Reads those texts that earlier transactions stored. */
export async function indexEntries(
  transactions: readonly LoggedTransaction[],
  readTexts: (hashes: readonly Sha256[]) => Promise<ReadonlyMap<Sha256, string>>,
): Promise<readonly IndexEntry[]> {
  const texts = new Map<Sha256, string>();
  const found: Indexed[] = [];
  for (const { txId, puts } of transactions) {
    for (const { document, validTime } of puts) {
      const { 'xt/id': id, type, text } = document;
      if (type === 'chunk' && typeof text === 'string') texts.set(id.replace(/^chunk:|~$/g, '') as Sha256, text);
      const one = indexed(document, { validTime, txId });
      if (one !== undefined) found.push(one);
    }
  }
  const missing = [...new Set(found.flatMap(({ hashes }) => hashes))].filter((hash) => !texts.has(hash));
  for (let i = 0; i < missing.length; i += TEXTS_AT_ONCE)
    for (const [hash, text] of await readTexts(missing.slice(i, i + TEXTS_AT_ONCE))) texts.set(hash, text);
  return found.flatMap(({ entries }) => entries(texts));
}
