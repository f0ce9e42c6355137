import { none } from 'stream-chain/defs.js';
import { jsonParser, type Token } from 'stream-json/core/parser.js';
import { messageOf } from '../../../values/thrown.js';
import type { OnLoss } from '../importer.js';
import { type DocumentItem, type DocumentShape, DocumentWalk } from './document-walk.js';

// The library marks the end of its input by this value, which its types do not allow.
const END = none as unknown as string;

/** Splits JSON text that comes in pieces into tokens; several values may follow one another. */
export interface JsonTokenizer {
  /**
   * The tokens that this text completes.
   * @throws {Error} – the text is not JSON
   */
  feed(text: string): Iterable<Token>;
  /**
   * The last tokens.
   * @throws {Error} – a value is not at its end
   */
  end(): Iterable<Token>;
}

/** A tokenizer that gives every string and number as one token. */
export function createTokenizer(): JsonTokenizer {
  const parse = jsonParser({ packValues: true, streamValues: false, jsonStreaming: true });
  const listed = (tokens: ReturnType<typeof parse>): Iterable<Token> =>
    typeof tokens === 'object' && 'values' in tokens ? tokens.values : [];
  return { feed: (text) => listed(parse(text)), end: () => listed(parse(END)) };
}

/** How much text is parsed at once. Values in the same piece as a broken place are lost, so a piece is short. */
const SLICE_CHARS = 8 * 1024;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Bytes as text; bytes that are not UTF-8 are replaced and reported once. */
async function* decoded(chunks: AsyncIterable<Buffer>, onLoss: OnLoss): AsyncIterable<string> {
  let decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes === 0 && chunk.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)) {
      onLoss({ reason: 'repaired-text', place: 'byte 0', detail: 'a byte order mark was removed' });
    }
    let text: string;
    try {
      text = decoder.decode(chunk, { stream: true });
    } catch {
      if (decoder.fatal)
        onLoss({ reason: 'repaired-text', place: `byte ${bytes}`, detail: 'bytes that are not UTF-8 were replaced by U+FFFD' });
      decoder = new TextDecoder('utf-8');
      text = decoder.decode(chunk, { stream: true });
    }
    bytes += chunk.length;
    for (let from = 0; from < text.length; from += SLICE_CHARS) yield text.slice(from, from + SLICE_CHARS);
  }
}

/**
 * Streams the values that a shape asks for out of one large JSON document, or out of several one after another: in order, one item at a time in memory. Never
 * throws for the content. A document that ends early yields the items before its end and the loss `truncated-file`; a broken one yields the items before the
 * broken place and the loss `malformed-record`, as do items that are too large or nested too deeply; replaced text is `repaired-text`.
 */
export async function* documentItems(chunks: AsyncIterable<Buffer>, shape: DocumentShape, onLoss: OnLoss): AsyncIterable<DocumentItem> {
  const tokenizer = createTokenizer();
  const walk = new DocumentWalk(shape, onLoss);
  const text = decoded(chunks, onLoss)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await text.next();
      const ended = next.done === true;
      const items: DocumentItem[] = [];
      try {
        for (const token of next.done === true ? tokenizer.end() : tokenizer.feed(next.value)) {
          const item = walk.consume(token);
          if (item !== undefined) items.push(item);
        }
        if (ended && walk.inside) throw new SyntaxError('the document is not at its end');
      } catch (error) {
        const place = walk.place === '' ? 'document' : walk.place;
        if (ended) onLoss({ reason: 'truncated-file', place, detail: 'the file ends inside a value' });
        else onLoss({ reason: 'malformed-record', place, detail: `not JSON, nothing behind it is read: ${messageOf(error)}` });
        return;
      }
      yield* items;
      if (ended) return;
    }
  } finally {
    await text.return?.();
  }
}
