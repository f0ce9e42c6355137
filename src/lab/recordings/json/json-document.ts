import type { OnLoss } from '../importer.js';
import type { DocumentShape } from './document-shape.js';
import { type DocumentItem, DocumentWalk } from './document-walk.js';
import { createTokenizer, type Token } from './json-tokens.js';

/** How much text is read at once: what is lost in front of a broken place is at most this long. */
const SLICE_CHARS = 8 * 1024;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Bytes as text; what is not UTF-8 is replaced and told once. */
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

const messageOf = (error: unknown): string => (error instanceof Object && 'message' in error ? String(error.message) : String(error));

/**
 * The values of one large JSON document, or of several one after another, that its shape asks for, in order, streamed: one item at a time is in memory. A
 * document that ends early or breaks gives the items before that place; the end is told to `onLoss` (`truncated-file`), as is a broken place
 * (`malformed-record`; nothing is read behind it), an item that is too large or nested too deeply, and text that had to be repaired. Never throws for the
 * document.
 */
export async function* documentItems(chunks: AsyncIterable<Buffer>, shape: DocumentShape, onLoss: OnLoss): AsyncIterable<DocumentItem> {
  const tokenizer = createTokenizer();
  const walk = new DocumentWalk(shape, onLoss);
  const taken = function* (next: () => Iterable<Token>, reason: 'malformed-record' | 'truncated-file'): Iterable<DocumentItem> {
    for (const token of next()) {
      const item = walk.consume(token);
      if (item !== undefined) yield item;
    }
    if (reason === 'truncated-file' && walk.inside) throw new SyntaxError('the document is not at its end');
  };
  let reason: 'malformed-record' | 'truncated-file' = 'malformed-record';
  const text = decoded(chunks, onLoss)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await text.next();
      if (next.done === true) reason = 'truncated-file';
      let items: Iterable<DocumentItem>;
      try {
        items = [...taken(() => (next.done === true ? tokenizer.end() : tokenizer.feed(next.value)), reason)];
      } catch (error) {
        const detail =
          reason === 'truncated-file' ? 'the file ends inside a value' : `not JSON, nothing behind it is read: ${messageOf(error)}`;
        onLoss({ reason, place: walk.place === '' ? 'document' : walk.place, detail });
        return;
      }
      yield* items;
      if (next.done === true) return;
    }
  } finally {
    await text.return?.();
  }
}
