import { excerpt } from '../entries/excerpt.js';
import { idAt, momentOf, objectAt } from '../entries/fields.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';

/** What all entries of a record have. */
export type PiCommon = Pick<EntryOf<'event'>, 'session' | 'place' | 'at' | 'native_id' | 'parent_id' | 'copied'>;

/** Where an entry stands. */
export interface PiPosition {
  readonly common: PiCommon;
  /** The entry that the conversation went back from, where it did. */
  readonly rewound: string | undefined;
}

/** The id of an entry of the first version, which has none: counted from the header, as compactions there count. */
export const entryId = (index: number): string => `entry-${index}`;

/** The session that a file is of. */
interface PiOrigin {
  readonly session: string;
  readonly startedAt: number | undefined;
  readonly fork: boolean;
}

/** The tree that the entries of a file form; in the first version a list. Remembers ids alone. */
export class PiTree {
  readonly #onLoss: OnLoss;
  readonly #ids = new Set<string>();
  #last: string | undefined;

  constructor(onLoss: OnLoss) {
    this.#onLoss = onLoss;
  }

  /** The position of an entry; undefined, and told, where it was there before. Entries older than the header of a forked file are copies. */
  place(record: JsonObject, place: string, index: number, { session, startedAt, fork }: PiOrigin): PiPosition | undefined {
    const own = idAt(record, 'id');
    const id = own ?? entryId(index);
    if (this.#ids.has(id)) {
      this.#onLoss({ reason: 'duplicate-id', place, detail: `the entry ${excerpt(id)} was there before: left out` });
      return undefined;
    }
    this.#ids.add(id);
    const last = this.#last;
    const parent = own === undefined ? last : idAt(record, 'parentId');
    this.#last = id;
    const at = momentOf(record.timestamp) ?? momentOf(objectAt(record, 'message')?.timestamp);
    const copied = fork && at !== undefined && startedAt !== undefined && at < startedAt;
    const common: PiCommon = { session, place, at, native_id: id, parent_id: parent, ...(copied ? { copied } : {}) };
    return { common, rewound: last !== undefined && own !== undefined && parent !== last ? last : undefined };
  }
}
