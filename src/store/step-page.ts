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

/** Steps of a page; the first page of a fork may hold fewer. */
export const PAGE_STEPS = 100;
/** UTF-16 units of the largest page: steps that make up a larger one are long themselves, and gain nothing by standing together. */
const LARGEST_PAGE = 1_048_576;

/** The steps of one page: those of the session that wrote them from one number to another, both included. */
export interface PageRange {
  readonly session: SessionId;
  readonly first: number;
  readonly last: number;
}

/** What the line of a tool call is made of: of its head the fields that stand in it or decide about it, and its marks. */
export interface KnownCall {
  readonly document: Readonly<Record<string, StoredValue>>;
  readonly marks: HeadMarks;
}

/** Calls that pages held, by id: each is written once, with the step that names it, so whoever has the step may take them from here. Forgets the oldest. */
export class KnownCalls {
  readonly #calls = new LRUCache<ObjectId, KnownCall>(counted(20_000));

  get(id: ObjectId): KnownCall | undefined {
    return this.#calls.get(id);
  }

  learn(calls: readonly KnownCall[]): void {
    for (const call of calls) this.#calls.set(call.document['xt/id'] as ObjectId, call);
  }
}

/** A page as it is read: the parts of its steps in order, as the database holds each by itself too, and the calls among them. */
export interface StepPage {
  readonly steps: readonly StoredDocument[];
  readonly calls: readonly KnownCall[];
}

/** The numbers of some steps. */
export const seqsOf = ({ first, last }: Pick<PageRange, 'first' | 'last'>): readonly number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);

/** The id of a page (decision 0015). */
export const pageId = ({ session, first, last }: PageRange): PartId => partId('step', session, `${first}-${last}`);

/** The pages of a session's own steps that lie wholly within a range of them, both ends included. */
export function pagesWithin(segment: LineageSegment, { first: from, last: to }: Pick<PageRange, 'first' | 'last'>): readonly PageRange[] {
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
  const document = Object.fromEntries(CALL_FIELDS.flatMap((field) => (head[field] === undefined ? [] : [[field, head[field]]])));
  const { size } = marksOf(head);
  return { document, marks: defined({ size }) };
}

type WrittenStep = readonly [seq: number, body: StoredValue];
type WrittenCall = readonly [document: KnownCall['document'], marks: HeadMarks];

/**
 * A page of steps, from their parts and the heads of their calls. It is one text: the database, the wire and their readers take that for a fraction of what as many
 * documents take. Undefined where it would be too large.
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

/** Reads a page back. @throws {StoreError} `corrupt-part` – it does not hold the steps that its id names */
export function fromPagePart(range: PageRange, part: StoredDocument): StepPage {
  const damaged = (cause?: unknown): StoreError =>
    new StoreError('corrupt-part', `${pageId(range)} does not hold the steps that it is named after`, { cause });
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

/** What a page says, in whatever order its keys and calls stand. */
function saying({ text }: StoredDocument): string {
  const said = JSON.parse(String(text)) as { readonly calls?: readonly unknown[] };
  return canonicalJson(Array.isArray(said.calls) ? { ...said, calls: said.calls.map((call) => canonicalJson(call)).sort() } : said);
}

/** Whether a page says what another one says, in whatever order its keys and calls stand. */
export function saysTheSame(page: StoredDocument, other: StoredDocument | undefined): boolean {
  try {
    return other !== undefined && (page.text === other.text || saying(page) === saying(other));
  } catch {
    return false;
  }
}
