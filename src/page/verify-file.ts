import type { EmbeddedSession } from './embedded.js';
import { sha256 } from './sha256.js';
import type { PastContext, Show, Strip } from './wire.js';

/** The result of verifying a file so far. */
export interface Verified {
  /** Number of items checked so far. */
  readonly done: number;
  /** Number of items to check. */
  readonly total: number;
  /** Blocks that match the manifest. */
  readonly blocks: number;
  /** Sent contexts whose text matches the hash that was recorded when they were handed out. */
  readonly contexts: number;
  /** Contexts that only a transcript shows. Their requests were never recorded. */
  readonly transcribed: number;
  /** Contexts without a record to compare with. */
  readonly unrecorded: number;
  /** Versions whose text matches their hash. */
  readonly versions: number;
  /**
   * Contexts and versions with masked text. They have new hashes; the originals are not revealed.
   */
  readonly masked: number;
  /** Descriptions of mismatches. */
  readonly wrong: readonly string[];
}

const utf8 = new TextEncoder();

/** Whether an answer reports masked text. */
const isMasked = (answer: unknown): boolean => (answer as { readonly redacted?: boolean }).redacted === true;

/**
 * Hashes all content of a file in the browser, and compares the hashes with those in the file.
 * Reports progress.
 */
export async function verifyFile(file: EmbeddedSession, onProgress: (found: Verified) => void): Promise<Verified> {
  const { blocks } = file.manifest;
  const [blocksToDo, keys] = [blocks.length, await file.keys()];
  const contexts = keys.filter((key) => key.startsWith('/v1/context '));
  const versions = keys.filter((key) => key.startsWith('/v1/show '));
  const total = blocksToDo + contexts.length + versions.length;
  const strip = keys.find((key) => key.startsWith('/v1/strip '));
  const { calls } = strip === undefined ? { calls: [] } : ((await file.byKey(strip)) as Strip);
  const transcripts = new Set(calls.flatMap(({ kind, step }) => (kind === 'transcript' ? [`at=step:${step}`] : [])));
  let found: Verified = {
    done: 0,
    total,
    blocks: 0,
    contexts: 0,
    transcribed: 0,
    unrecorded: 0,
    versions: 0,
    masked: 0,
    wrong: [],
  };
  const report = (more: Partial<Verified>): void => {
    found = { ...found, ...more, done: found.done + 1 };
    onProgress(found);
  };
  const wrong = (what: string): void => report({ wrong: [...found.wrong, what] });
  for (const number of blocks.keys()) {
    if (await file.isWhole(number)) report({ blocks: found.blocks + 1 });
    else wrong(`block ${number} does not match its hash in the manifest`);
  }
  for (const key of contexts) {
    const answer = (await file.byKey(key)) as PastContext;
    const isSame = (await sha256(utf8.encode(answer.text))) === answer.sha256;
    if (!isSame || answer.matches === false)
      wrong(`the context at ${key.split('at=')[1]} does not match its recorded hash`);
    else if (isMasked(answer)) report({ masked: found.masked + 1 });
    else if (transcripts.has(/at=step:\d+/.exec(key)?.[0] ?? '')) report({ transcribed: found.transcribed + 1 });
    else if (answer.matches === null) report({ unrecorded: found.unrecorded + 1 });
    else report({ contexts: found.contexts + 1 });
  }
  for (const key of versions) {
    const { object, ...rest } = (await file.byKey(key)) as Show;
    const { content, content_hash: hash } = object;
    if (typeof hash === 'string' && typeof content === 'string' && (await sha256(utf8.encode(content))) !== hash)
      wrong(`${key} does not match its content hash`);
    else if (isMasked(rest)) report({ masked: found.masked + 1 });
    else report({ versions: found.versions + 1 });
  }
  return found;
}
