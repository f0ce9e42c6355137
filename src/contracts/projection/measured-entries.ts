import { type ObjectMetadata, referenceLine } from '../../assembly/metadata.js';
import { renderedValue } from '../../assembly/rendered-value.js';
import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import { defined } from '../../values/defined.js';
import type { EntryCall, ResultEntry, TokenCounter } from './entry.js';

/** A tool call as stored in the database. */
export interface StoredCall {
  readonly metadata: ObjectMetadata<'toolcall'>;
  readonly args: Json;
  /** The canonical JSON of the arguments if the object stores only a reference to it. */
  readonly argsText?: string;
  readonly content: string | null;
  /** The hash of the whole text if `content` is abridged. */
  readonly whole?: Sha256;
}

/**
 * Returns the harness's own id of a call. The last `@` of a stored id precedes the session's name,
 * with a number if the call was repeated (decision B2).
 */
export const nativeId = (id: ObjectId): string => /^(.*)@[^@]*$/s.exec(id)?.[1] ?? id;

/** The measurements of a text. They never change. */
interface MeasuredText {
  readonly text: string;
  readonly sha256: Sha256;
  readonly tokens: number;
}

/** The measurements of a call and its result. They never change and do not depend on the sets. */
interface MeasuredCall {
  readonly call: EntryCall;
  readonly result: Pick<
    ResultEntry,
    'sha256' | 'tokens' | 'call' | 'native' | 'tool' | 'status' | 'text' | 'whole' | 'files' | 'line' | 'lineTokens'
  >;
}

/**
 * Caches the token counts of steps and calls for one counter. Steps and calls are written once, so
 * each is measured once.
 */
export class Measures {
  static readonly #known = new WeakMap<TokenCounter, Measures>();
  readonly #counter: TokenCounter;
  readonly #messages = new WeakMap<Message, MeasuredText>();
  readonly #calls = new WeakMap<StoredCall, MeasuredCall>();

  private constructor(counter: TokenCounter) {
    this.#counter = counter;
  }

  static by(counter: TokenCounter): Measures {
    const known = Measures.#known.get(counter) ?? new Measures(counter);
    Measures.#known.set(counter, known);
    return known;
  }

  text(text: string): MeasuredText {
    return { text, sha256: hashText(text), tokens: this.#counter.count(text) };
  }

  message(message: Message): MeasuredText {
    const known = this.#messages.get(message) ?? this.text(message.text);
    this.#messages.set(message, known);
    return known;
  }

  pending({ native, tool, args }: Pick<EntryCall, 'native' | 'tool' | 'args'>): EntryCall {
    return this.#call({ id: native as ObjectId, native, tool, args, argsText: canonicalJson(args), state: 'pending' });
  }

  stored(stored: StoredCall): MeasuredCall {
    const known = this.#calls.get(stored) ?? this.#measured(stored);
    this.#calls.set(stored, known);
    return known;
  }

  #call(call: Omit<EntryCall, 'tokens'>): EntryCall {
    return { ...call, tokens: this.#counter.count(call.tool) + this.#counter.count(call.argsText) };
  }

  #measured({ metadata, args, argsText = canonicalJson(args), content, whole }: StoredCall): MeasuredCall {
    const { id, tool, status, contentHash, fileRefs } = metadata;
    const native = nativeId(id);
    const line = referenceLine(metadata, renderedValue);
    return {
      call: this.#call({ id, native, tool, args, argsText, state: 'answered' }),
      result: {
        sha256: contentHash ?? hashText(content ?? ''),
        tokens: content === null ? 0 : this.#counter.count(content),
        call: id,
        native,
        tool,
        status,
        text: content,
        ...defined({ whole }),
        files: fileRefs,
        line,
        lineTokens: this.#counter.count(line),
      },
    };
  }
}
