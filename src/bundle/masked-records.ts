import type { Json } from '../objects/canonical-json.js';
import { type ContextRecord, contextRecord, type RecordKind } from '../objects/context-record.js';
import { hashText } from '../objects/hashes.js';
import { roundedSize } from '../redaction/mark.js';
import { toRecordPart } from '../store/context-records.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import type { MaskedDocument, MaskedDocuments, MaskedText } from './masked-documents.js';
import type { MaskedNames } from './masked-names.js';

/** The members of each record kind whose value is one word of a fixed list. They are not masked. */
const OWN_WORDS: Readonly<Partial<Record<RecordKind, readonly string[]>>> = {
  missing: ['severity', 'status'],
  memory: ['item', 'sensitivity'],
  tombstone: ['by'],
  note: ['note'],
  approval: ['state'],
  review: ['verdict'],
};

/** Members whose content other programs determine. */
const FREE: ReadonlySet<string> = new Set(['extra', 'data', 'content', 'provenance', 'state', 'body', 'args']);

/** Members that hold a length or a size. */
const SIZE = /(?:chars|bytes|tokens|length|size|actual)$|^(?:before|after)$/i;

const DIGEST = /^[0-9a-f]{64}$/;

/**
 * Masks texts in the records of a session. Replaces references to texts, objects and contexts by
 * references to their masked forms.
 */
export class MaskedRecords {
  readonly #names: MaskedNames;
  readonly #documents: MaskedDocuments;

  constructor(names: MaskedNames, documents: MaskedDocuments) {
    this.#names = names;
    this.#documents = documents;
  }

  /**
   * Returns a masked record. Undefined for a piece of an import: it is valid only byte for byte, so
   * the bundle leaves it out.
   *
   * @throws {BundleError} `redacted` if the masked record would be invalid
   */
  async masked(part: StoredDocument): Promise<MaskedDocument | undefined> {
    const record = contextRecord(JSON.parse(String(part.text)));
    if (record.kind === 'import') return undefined;
    const texts: MaskedText[] = [];
    for (const hash of record.texts ?? []) {
      const text = await this.#documents.text(hash);
      if (text === undefined)
        throw new BundleError('malformed', `a text of ${JSON.stringify(part['xt/id'])} is not in the database`);
      const left = this.#names.text(text);
      texts.push({ hash: hashText(left), isMessage: false, text: left });
      this.#documents.replace(hash, hashText(left));
    }
    const { sources } = record;
    const made = {
      ...record,
      ...defined({
        texts: record.texts && texts.map(({ hash }) => hash),
        sources: sources?.map(({ id, objectHash }) => ({
          id: this.#named(id) ?? this.#names.text(id),
          objectHash: this.#documents.hash(objectHash),
        })),
      }),
      body: this.#body(record),
    };
    try {
      return { document: toRecordPart(contextRecord(made)), texts };
    } catch (cause) {
      throw new BundleError(
        'redacted',
        `a record of kind ${record.kind} at step ${record.seq} cannot be redacted: ${messageOf(cause)}`,
        {
          cause,
        },
      );
    }
  }

  #body({ kind, body }: ContextRecord): Json {
    const own = OWN_WORDS[kind] ?? [];
    return Object.fromEntries(
      Object.entries(body as { readonly [name: string]: Json }).map(([name, value]) => [
        name,
        own.includes(name) ? value : this.#member(name, value),
      ]),
    );
  }

  /**
   * Masks a member. Our own members keep their form. Free content is masked completely, including
   * its names and numbers.
   */
  #member(name: string, value: Json): Json {
    if (FREE.has(name)) return this.#names.value(this.#free(name, value));
    if (typeof value === 'string') return this.#named(value) ?? this.#names.text(value);
    return this.#below(name, value, (key, one) => this.#member(key, one));
  }

  /** Replaces names, hashes and sizes in free content. */
  #free(name: string, value: Json): Json {
    return typeof value === 'string'
      ? (this.#named(value) ?? value)
      : this.#below(name, value, (key, one) => this.#free(key, one));
  }

  #below(name: string, value: Json, of: (name: string, value: Json) => Json): Json {
    if (typeof value === 'number' && SIZE.test(name)) return roundedSize(value);
    if (Array.isArray(value)) return value.map((one) => of(name, one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, of(key, one)]));
  }

  /** Returns the replacement of a hash or of an object's or context's name. Undefined if none. */
  #named(text: string): string | undefined {
    const known = this.#documents.replacementOf(text) ?? (this.#names.has(text) ? this.#names.id(text) : undefined);
    return known ?? (DIGEST.test(text) ? this.#documents.hash(text) : undefined);
  }
}
