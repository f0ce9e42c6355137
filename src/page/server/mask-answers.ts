import { BundleError } from '../../bundle/bundle-error.js';
import type { ObjectMask } from '../../bundle/masked-names.js';
import type { Json } from '../../objects/canonical-json.js';
import { hashText, metadataHash, objectHash } from '../../objects/hashes.js';
import type { Sha256 } from '../../objects/ids.js';
import { FIELDS, isObjectType } from '../../objects/object-type.js';
import { MASK, roundedSize } from '../../redaction/mark.js';
import type { PageAnswer } from './page-answers.js';

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A page's data for searches. A text and its hit have the same index in both lists. */
interface SearchedTexts {
  readonly found: { readonly hits: readonly { readonly object?: string | null }[] };
  readonly texts: readonly string[];
}

/** Fields that contain a hash, in any object. */
const HASHES: ReadonlySet<string> = new Set(['sha256', 'content_hash', 'file_hash', 'metadata_hash', 'object_hash']);
/** Fields that contain the size of a text. */
const SIZES: ReadonlySet<string> = new Set(['chars', 'bytes', 'tokens']);
/** The hash that is shown for content outside of the page. The true hash could confirm a guess. */
const NO_HASH = hashText('');

/**
 * Masks texts in the answers of a page. A context or version with masked text gets the hash of its
 * masked text, and `redacted: true`. The page never has the original hash, because it could confirm
 * a guess. It shows a hash only if it also shows the hashed content unmasked.
 */
export class MaskedAnswers {
  readonly mask: ObjectMask;
  /** The new hashes of masked content, by their original hashes. */
  readonly #hashes = new Map<string, string>();
  /** Hashes that the page may show, because their content is in it. */
  readonly #shown = new Set<string>();
  #count = 0;

  constructor(mask: ObjectMask) {
    this.mask = mask;
  }

  /**
   * The number of texts that the mask changes, among the messages, results, arguments and versions
   * of the corpus. A preview counts in the same way.
   */
  get count(): number {
    return this.#count;
  }

  /**
   * Masks an answer. Contexts and versions must come before answers that repeat their hashes.
   * @throws {BundleError} `redacted` – the hidden text occurs in a lookup key
   */
  masked({ path, parameters, body }: PageAnswer): PageAnswer {
    for (const [name, value] of Object.entries(parameters))
      if (typeof value === 'string' && this.mask.masked(value) !== value)
        throw new BundleError(
          'redacted',
          `the hidden text occurs in the ${name} ${this.mask.masked(value)}, which is a lookup key and cannot ` +
            'be masked',
        );
    if (path === '/v1/show') return { path, parameters, body: this.#version(body as Members) };
    if (path === '/v1/context') return { path, parameters, body: this.#context(body as Members) };
    const made = this.#value(path === '/v1/search' ? this.#corpus(body as SearchedTexts) : body) as Members;
    const { request } = body as { readonly request?: { readonly sha256: string } };
    const isRedacted = path === '/v1/request' && request !== undefined && this.#hashes.has(request.sha256);
    return { path, parameters, body: isRedacted ? { ...made, redacted: true } : made };
  }

  #context(before: Members): Members {
    const { sha256: was, ...rest } = before;
    const made = this.#value(rest) as Members;
    if (before.text === made.text) {
      if (!this.#hashes.has(String(was))) this.#shown.add(String(was));
      return { ...made, sha256: was };
    }
    const sha256 = hashText(String(made.text).toWellFormed());
    this.#withhold(String(was), sha256);
    return { ...made, sha256, redacted: true };
  }

  /** Masks a version and computes its hashes again. */
  #version(before: Members): Members {
    const was = before.object;
    if (!isMembers(was) || !isObjectType(was.type)) return this.#value(before) as Members;
    const hashed = Object.entries(was).filter(([name]) => HASHES.has(name));
    const plain = Object.fromEntries(Object.entries(was).filter(([name]) => !HASHES.has(name)));
    const made = this.#value({ ...before, object: plain, ...this.#whole(before, plain) }) as Members;
    const is = made.object as Members;
    const isSame =
      was.content === is.content &&
      before.text === made.text &&
      JSON.stringify(is.args) === JSON.stringify(was.args) &&
      was.args_display === is.args_display;
    if (isSame) {
      // If the text is not in this answer, the hash may belong to a text that another version has
      // masked.
      const isWhole = typeof was.content === 'string' || (was.content_hash === null && was.file_hash === null);
      const kept = hashed.filter(([, value]) => isWhole && typeof value === 'string' && !this.#hashes.has(value));
      for (const [, value] of kept) this.#shown.add(String(value));
      return { ...made, object: { ...is, ...this.#hashesOf(Object.fromEntries(hashed)) } };
    }
    const text = typeof is.content === 'string' ? is.content : undefined;
    const isOther = text !== undefined && was.content !== is.content;
    const content_hash = isOther ? hashText(text.toWellFormed()) : (was.content_hash as Sha256 | null);
    const file_hash = was.file_hash === null ? null : content_hash;
    const fields = Object.fromEntries(
      Object.keys(FIELDS[was.type]).flatMap((name) => {
        const value = name === 'char_count' && isOther ? text.length : is[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
    const metadata_hash = metadataHash(fields);
    const hashes = { file_hash, content_hash, metadata_hash };
    const now = { ...hashes, object_hash: objectHash(hashes) };
    for (const [name, value] of Object.entries(now))
      if (typeof was[name] === 'string' && was[name] !== value && value !== null) this.#withhold(was[name], value);
    return { ...made, object: { ...is, ...fields, ...now }, redacted: true };
  }

  /** Returns the searchable texts, without those of wholly hidden objects. */
  #corpus({ found, texts }: SearchedTexts): object {
    const { hides } = this.mask;
    const isHidden = (i: number): boolean => hides(found.hits[i]?.object ?? '');
    this.#count = texts.filter((text, i) => isHidden(i) || this.mask.masked(text) !== text).length;
    return { found, texts: texts.map((text, i) => (isHidden(i) ? MASK : text)) };
  }

  /** Returns replacements for the texts of a version. Empty unless its object is wholly hidden. */
  #whole({ text }: Members, object: Members): Members {
    const { hides } = this.mask;
    if (!hides(String(object['xt/id']))) return {};
    return { text: text === null ? null : MASK, object: { ...object, content: object.content === null ? null : MASK } };
  }

  #withhold(hash: string, masked: string): void {
    this.#hashes.set(hash, masked);
    this.#shown.delete(hash);
    this.#shown.add(masked);
  }

  #hashOf(hash: string): string {
    return this.#hashes.get(hash) ?? (this.#shown.has(hash) ? hash : NO_HASH);
  }

  #hashesOf(members: Members): Members {
    return Object.fromEntries(
      Object.entries(members).map(([name, one]) => [name, typeof one === 'string' ? this.#hashOf(one) : one]),
    );
  }

  /**
   * Masks a value. With `roundsSizes`, rounds the sizes in the value, because they may be sizes of
   * masked text.
   */
  #value(value: unknown, roundsSizes = false): unknown {
    if (typeof value === 'string') return this.#text(value);
    if (Array.isArray(value)) return value.map((one) => this.#value(one, roundsSizes));
    if (!isMembers(value)) return value;
    const roundsHere =
      roundsSizes ||
      Object.entries(value).some(
        ([name, one]) => HASHES.has(name) && typeof one === 'string' && this.#hashOf(one) !== one,
      );
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => {
        if (name === 'args' && isMembers(one)) return [name, this.#arguments(one)];
        if (HASHES.has(name) && typeof one === 'string') return [name, this.#hashOf(one)];
        if (SIZES.has(name) && typeof one === 'number' && roundsHere) return [name, roundedSize(one)];
        return [name, this.#value(one, roundsHere)];
      }),
    );
  }

  /** Masks arguments, whose keys are chosen by the agent. */
  #arguments(args: Members): unknown {
    return this.mask.maskedValue(args as Json);
  }

  #text(text: string): string {
    return this.#hashes.get(text) ?? this.mask.masked(text);
  }
}
