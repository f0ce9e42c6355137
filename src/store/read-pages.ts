import pLimit from 'p-limit';
import type { PartId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { Lineage } from './lineage.js';
import { readParts } from './part-id.js';
import { existingIds, headsWithTimes } from './queries.js';
import {
  fromPagePart,
  type PageRange,
  pageId,
  pagesWithin,
  type StepPage,
  saysTheSame,
  seqsOf,
  toPagePart,
} from './step-page.js';
import { fromStepPart, stepId } from './step-part.js';

/** Number of pages compared with their steps concurrently. */
const PAGES_AT_ONCE = 4;

/** A stored page with its range. */
interface FoundPage extends StepPage {
  readonly range: PageRange;
}

/** A page to write, with the beginning of its valid time: the time of its last step. */
interface WrittenPage {
  readonly part: StoredDocument;
  readonly validTime: Date;
}

/** Reads pages of steps at one basis, and builds missing ones (decision 0015). */
export class PageReader {
  readonly #db: DbSnapshot;

  constructor(db: DbSnapshot) {
    this.#db = db;
  }

  /**
   * Returns the pages of some ranges that exist.
   *
   * @throws {StoreError} `corrupt-part` if a page does not hold the steps in its name
   */
  async read(ranges: readonly PageRange[]): Promise<readonly FoundPage[]> {
    const found = await this.#db.entities(ranges.map(pageId));
    return ranges.flatMap((range) => {
      const part = found.get(pageId(range));
      return part === undefined ? [] : [{ range, ...fromPagePart(range, part) }];
    });
  }

  /**
   * Returns the ranges of a session's own complete pages up to `upto` that the database does not
   * hold.
   */
  async missing({ session, segments }: Lineage, upto: number): Promise<readonly PageRange[]> {
    const due = segments
      .filter((segment) => segment.session === session)
      .flatMap((own) => pagesWithin(own, { first: 1, last: upto }));
    const there = new Set(await existingIds(this.#db, due.map(pageId)));
    return due.filter((range) => !there.has(pageId(range)));
  }

  /** Builds a page from its steps. Undefined if it would be too large, or if a step is missing. */
  async made(range: PageRange): Promise<WrittenPage | undefined> {
    const ids = seqsOf(range).map((seq) => stepId(range.session, seq));
    const parts = await readParts(this.#db, ids);
    const steps = ids.flatMap((id) => parts.get(id) ?? []);
    const last = steps.at(-1);
    if (steps.length < ids.length || last === undefined) return undefined;
    const called = steps.flatMap((step) => fromStepPart(step, '').call?.id ?? []);
    const heads = new Map(
      (await headsWithTimes(this.#db, called)).map(({ document }) => [document['xt/id'], document]),
    );
    // Calls are sorted as the database usually returns them. So equal pages have equal text, even
    // for earlier versions that compare only the text.
    const part = toPagePart(range, { steps, calls: called.toSorted().flatMap((id) => heads.get(id) ?? []) });
    return part === undefined ? undefined : { part, validTime: new Date(fromStepPart(last, '').at) };
  }

  /**
   * Returns the pages of a lineage's steps up to `upto` that differ from the steps themselves.
   * Compares a few pages at a time.
   */
  async wrong({ segments }: Lineage, upto: number): Promise<readonly PartId[]> {
    const ranges = segments.flatMap((segment) => pagesWithin(segment, { first: 1, last: upto }));
    const found = await pLimit(PAGES_AT_ONCE).map(ranges, async (range) => {
      const [stored, made] = await Promise.all([this.#db.entity(pageId(range)), this.made(range)]);
      return stored !== undefined && !saysTheSame(stored, made?.part) ? [pageId(range)] : [];
    });
    return found.flat();
  }
}
