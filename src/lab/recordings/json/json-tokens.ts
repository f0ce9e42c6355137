import { none } from 'stream-chain/defs.js';
import { jsonParser, type Token } from 'stream-json/core/parser.js';

export type { Token } from 'stream-json/core/parser.js';

// The library tells a stage its end by this mark; its types know of text alone.
const END = none as unknown as string;

/** Reads JSON text as it comes, values one after another, as tokens. */
export interface JsonTokenizer {
  /** The tokens that are complete with this text. Throws where the text is not JSON. */
  feed(text: string): Iterable<Token>;
  /** The last tokens. Throws where a value is not at its end. */
  end(): Iterable<Token>;
}

/** A tokenizer over any number of JSON values; strings and numbers come whole. */
export function createTokenizer(): JsonTokenizer {
  const parse = jsonParser({ packValues: true, streamValues: false, jsonStreaming: true });
  const listed = (tokens: ReturnType<typeof parse>): Iterable<Token> =>
    typeof tokens === 'object' && 'values' in tokens ? tokens.values : [];
  return { feed: (text) => listed(parse(text)), end: () => listed(parse(END)) };
}
