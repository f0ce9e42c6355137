import { BundleError } from '../bundle/bundle-error.js';
import { hashText, metadataHash, objectHash } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import { FIELDS, isObjectType } from '../objects/object-type.js';
import type { PageAnswer } from './page-answers.js';

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Hides texts in the answers of a page. Contexts and versions in which something was hidden get the hash of what is left and say so; the hash of what stood there is nowhere in the page, since it would tell
 * whether somebody guessed right.
 */
export class MaskedAnswers {
  readonly #mask: (text: string) => string;
  /** Hashes that are not told, and what stands for them. */
  readonly #hashes = new Map<string, string>();
  #count = 0;

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  /** How many texts were masked. */
  get count(): number {
    return this.#count;
  }

  /** An answer without what is hidden. @throws {BundleError} `redacted` – it stands in a name that the answer is found by */
  masked({ path, parameters, body }: PageAnswer): PageAnswer {
    for (const [name, value] of Object.entries(parameters))
      if (typeof value === 'string' && this.#mask(value) !== value)
        throw new BundleError(
          'redacted',
          `what is to be hidden stands in the ${name} ${this.#mask(value)}, by which everything is found: it cannot be taken out`,
        );
    if (path === '/v1/show') return { path, parameters, body: this.#version(body as Members) };
    const made = this.#value(body) as Members;
    if (path === '/v1/context') return { path, parameters, body: this.#context(body as Members, made) };
    const { request } = body as { readonly request?: { readonly sha256: string } };
    const isRedacted = path === '/v1/request' && request !== undefined && this.#hashes.has(request.sha256);
    return { path, parameters, body: isRedacted ? { ...made, redacted: true } : made };
  }

  #context(before: Members, made: Members): Members {
    if (before.text === made.text) return made;
    const sha256 = hashText(String(made.text).toWellFormed());
    this.#hashes.set(String(before.sha256), sha256);
    return { ...made, sha256, redacted: true };
  }

  /** A version: its hashes are those of what is left of it. */
  #version(before: Members): Members {
    const made = this.#value(before) as Members;
    const [was, is] = [before.object, made.object];
    if (!isMembers(was) || !isMembers(is) || !isObjectType(was.type)) return made;
    const args = isMembers(was.args) ? this.#arguments(was.args) : is.args;
    const isSame = was.content === is.content && before.text === made.text && JSON.stringify(args) === JSON.stringify(was.args);
    if (isSame && was.args_display === is.args_display) return made;
    const text = typeof is.content === 'string' ? is.content : undefined;
    const isOther = text !== undefined && was.content !== is.content;
    const content_hash = isOther ? hashText(text.toWellFormed()) : (was.content_hash as Sha256 | null);
    const file_hash = was.file_hash === null ? null : content_hash;
    const fields = Object.fromEntries(
      Object.keys(FIELDS[was.type]).flatMap((name) => {
        const value = name === 'args' ? args : name === 'char_count' && isOther ? text.length : is[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
    const metadata_hash = metadataHash(fields);
    const hashes = { file_hash, content_hash, metadata_hash };
    const now = { ...hashes, object_hash: objectHash(hashes) };
    for (const [name, value] of Object.entries(now))
      if (typeof was[name] === 'string' && was[name] !== value && value !== null) this.#hashes.set(was[name], value);
    return { ...made, version: this.#value(before.version), object: { ...is, ...fields, ...now }, redacted: true };
  }

  /** Arguments, whose names are the agent's own. */
  #arguments(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((one) => this.#arguments(one));
    if (!isMembers(value)) return this.#value(value);
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [this.#text(name), this.#arguments(one)]));
  }

  #value(value: unknown): unknown {
    if (typeof value === 'string') return this.#text(value);
    if (Array.isArray(value)) return value.map((one) => this.#value(one));
    if (!isMembers(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, name === 'args' && isMembers(one) ? this.#arguments(one) : this.#value(one)]),
    );
  }

  #text(text: string): string {
    const hash = this.#hashes.get(text);
    if (hash !== undefined) return hash;
    const made = this.#mask(text);
    if (made !== text) this.#count += 1;
    return made;
  }
}
