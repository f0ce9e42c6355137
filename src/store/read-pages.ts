import pLimit from 'p-limit';
import type { PartId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { Lineage } from './lineage.js';
import { readParts } from './part-id.js';
import { existingIds, headsWithTimes } from './queries.js';
import { fromPagePart, type PageRange, pageId, pagesWithin, type StepPage, saysTheSame, seqsOf, toPagePart } from './step-page.js';
import { fromStepPart, stepId } from './step-part.js';

/** How many pages are compared with their steps at once. */
const PAGES_AT_ONCE = 4;

/** A page that is there. */
interface FoundPage extends StepPage {
  readonly range: PageRange;
}

/** A page as it is written, and the moment from which on it holds: that of its last step. */
interface WrittenPage {
  readonly part: StoredDocument;
  readonly validTime: Date;
}

/** Reads pages of steps at one basis, and makes those that are not there (decision 0015). */
export class PageReader {
  readonly #db: DbSnapshot;

  constructor(db: DbSnapshot) {
    this.#db = db;
  }

  /** Those of some pages that are there. @throws {StoreError} `corrupt-part` – one does not hold the steps that it is named after */
  async read(ranges: readonly PageRange[]): Promise<readonly FoundPage[]> {
    const found = await this.#db.entities(ranges.map(pageId));
    return ranges.flatMap((range) => {
      const part = found.get(pageId(range));
      return part === undefined ? [] : [{ range, ...fromPagePart(range, part) }];
    });
  }

  /** The pages that a session's own steps up to one make up and that are not there. */
  async missing({ session, segments }: Lineage, upto: number): Promise<readonly PageRange[]> {
    const due = segments.filter((segment) => segment.session === session).flatMap((own) => pagesWithin(own, { first: 1, last: upto }));
    const there = new Set(await existingIds(this.#db, due.map(pageId)));
    return due.filter((range) => !there.has(pageId(range)));
  }

  /** What a page is written as; undefined where it would be too large, and where not all of its steps are there. */
  async made(range: PageRange): Promise<WrittenPage | undefined> {
    const ids = seqsOf(range).map((seq) => stepId(range.session, seq));
    const parts = await readParts(this.#db, ids);
    const steps = ids.flatMap((id) => parts.get(id) ?? []);
    const last = steps.at(-1);
    if (steps.length < ids.length || last === undefined) return undefined;
    const called = steps.flatMap((step) => fromStepPart(step, '').call?.id ?? []);
    const heads = new Map((await headsWithTimes(this.#db, called)).map(({ document }) => [document['xt/id'], document]));
    // In the order that the database mostly answers in, so that the same page is the same text, also to versions that compare nothing else.
    const part = toPagePart(range, { steps, calls: called.toSorted().flatMap((id) => heads.get(id) ?? []) });
    return part === undefined ? undefined : { part, validTime: new Date(fromStepPart(last, '').at) };
  }

  /** The pages of the steps of a lineage up to one that do not say what the steps say by themselves; some are read at a time. */
  async wrong({ segments }: Lineage, upto: number): Promise<readonly PartId[]> {
    const ranges = segments.flatMap((segment) => pagesWithin(segment, { first: 1, last: upto }));
    const found = await pLimit(PAGES_AT_ONCE).map(ranges, async (range) => {
      const [stored, made] = await Promise.all([this.#db.entity(pageId(range)), this.made(range)]);
      return stored !== undefined && !saysTheSame(stored, made?.part) ? [pageId(range)] : [];
    });
    return found.flat();
  }
}
