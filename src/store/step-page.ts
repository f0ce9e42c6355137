import { LRUCache } from 'lru-cache';
import { canonicalJson } from '../objects/canonical-json.js';
import { type ObjectId, type PartId, type SessionId, sessionObjectId } from '../objects/ids.js';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import type { StoredDocument, StoredValue } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { type HeadMarks, marksOf } from './head.js';
import type { LineageSegment } from './lineage.js';
import { partId } from './part-id.js';

/** Number of steps per page. The first page of a fork may have fewer. */
export const PAGE_STEPS = 100;
/**
 * Maximum UTF-16 units of a page. A larger page would have long steps, for which a page saves
 * nothing.
 */
const LARGEST_PAGE = 1_048_576;

/** The range of steps of one page, both ends included, in the session that wrote them. */
export interface PageRange {
  readonly session: SessionId;
  readonly first: number;
  readonly last: number;
}

/**
 * The data of a tool call's pool line: the fields of its head that the line contains or depends on,
 * and its marks.
 */
export interface KnownCall {
  readonly document: Readonly<Record<string, StoredValue>>;
  readonly marks: HeadMarks;
}

/**
 * Caches calls from pages by id. A call is written once, with the step that names it, so any reader
 * that has the step may use the cache. Evicts the oldest calls.
 */
export class KnownCalls {
  readonly #calls = new LRUCache<ObjectId, KnownCall>(counted(20_000));

  get(id: ObjectId): KnownCall | undefined {
    return this.#calls.get(id);
  }

  learn(calls: readonly KnownCall[]): void {
    for (const call of calls) this.#calls.set(call.document['xt/id'] as ObjectId, call);
  }
}

/**
 * A page as it was read: the parts of its steps in order, and the calls of these steps. The parts
 * equal the individual ones in the database.
 */
export interface StepPage {
  readonly steps: readonly StoredDocument[];
  readonly calls: readonly KnownCall[];
}

/** Returns the step numbers of a range. */
export const seqsOf = ({ first, last }: Pick<PageRange, 'first' | 'last'>): readonly number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);

/** Returns the id of a page (decision 0015). */
export const pageId = ({ session, first, last }: PageRange): PartId => partId('step', session, `${first}-${last}`);

/** Returns the pages of a session's own steps that are fully within a range, both ends included. */
export function pagesWithin(
  segment: LineageSegment,
  { first: from, last: to }: Pick<PageRange, 'first' | 'last'>,
): readonly PageRange[] {
  const { session, first: own } = segment;
  const pages: PageRange[] = [];
  const end = Math.min(segment.last, to);
  for (let last = Math.ceil(Math.max(from, own) / PAGE_STEPS) * PAGE_STEPS; last <= end; last += PAGE_STEPS) {
    const first = Math.max(own, last - PAGE_STEPS + 1);
    if (first >= from) pages.push({ session, first, last });
  }
  return pages;
}

const CALL_FIELDS = ['xt/id', 'type', 'tool', 'args', 'status', 'content_hash', 'file_refs'] as const;

function knownCall(head: StoredDocument): KnownCall {
  const document = Object.fromEntries(
    CALL_FIELDS.flatMap((field) => (head[field] === undefined ? [] : [[field, head[field]]])),
  );
  const { size } = marksOf(head);
  return { document, marks: defined({ size }) };
}

type WrittenStep = readonly [seq: number, body: StoredValue];
type WrittenCall = readonly [document: KnownCall['document'], marks: HeadMarks];

/**
 * Builds a page of steps from their parts and the heads of their calls. A page is one text, which
 * the database, the network and readers handle much faster than many documents. Undefined if the
 * page would be too large.
 */
export function toPagePart(
  range: PageRange,
  { steps, calls }: { readonly [K in keyof StepPage]: readonly StoredDocument[] },
): StoredDocument | undefined {
  const text = JSON.stringify({
    steps: steps.map(({ seq, body }) => [seq, body]),
    calls: calls.map((head) => {
      const { document, marks } = knownCall(head);
      return [document, marks];
    }),
  });
  return text.length > LARGEST_PAGE ? undefined : { 'xt/id': pageId(range), type: 'steps', text };
}

/**
 * Parses a stored page.
 *
 * @throws {StoreError} `corrupt-part` if it does not hold the steps in its id
 */
export function fromPagePart(range: PageRange, part: StoredDocument): StepPage {
  const damaged = (cause?: unknown): StoreError =>
    new StoreError('corrupt-part', `${pageId(range)} does not hold the steps in its id`, { cause });
  let read: { readonly steps: readonly WrittenStep[]; readonly calls: readonly WrittenCall[] };
  try {
    read = JSON.parse(String(part.text));
  } catch (cause) {
    throw damaged(cause);
  }
  const { steps = [], calls = [] } = read;
  const isWhole = steps.length === range.last - range.first + 1 && steps.every(([seq], i) => seq === range.first + i);
  if (!isWhole) throw damaged();
  const { session } = range;
  const partOf = ([seq, body]: WrittenStep): StoredDocument => ({
    'xt/id': partId('step', session, seq),
    type: 'step',
    session_ref: sessionObjectId(session),
    seq,
    body,
  });
  return { steps: steps.map(partOf), calls: calls.map(([document, marks]) => ({ document, marks })) };
}

/**
 * Returns the content of a page in a form that does not depend on the order of its keys and calls.
 */
function saying({ text }: StoredDocument): string {
  const said = JSON.parse(String(text)) as { readonly calls?: readonly unknown[] };
  return canonicalJson(
    Array.isArray(said.calls) ? { ...said, calls: said.calls.map((call) => canonicalJson(call)).sort() } : said,
  );
}

/**
 * Returns whether two pages have the same content, independent of the order of their keys and
 * calls.
 */
export function saysTheSame(page: StoredDocument, other: StoredDocument | undefined): boolean {
  try {
    return other !== undefined && (page.text === other.text || saying(page) === saying(other));
  } catch {
    return false;
  }
}
