/** Minimum bytes of a string that becomes a separate span. */
const LONG_STRING = 2_048;
/** Minimum bytes of a span. After them, the span ends at the next list entry or long string. */
const LEAST_SPAN = 256;
/**
 * Maximum depth at which a span can end: that of the entries of the lists in the top-level object.
 */
const DEEPEST_BORDER = 2;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Returns the offset of the quote that ends a string, or the length of the body if none does. */
function endOfString(body: Buffer, from: number): number {
  for (let at = body.indexOf(QUOTE, from); at >= 0; at = body.indexOf(QUOTE, at + 1)) {
    let slashes = 0;
    while (body[at - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return body.length;
}

/**
 * Cuts a JSON body into spans, so that requests with equal parts have equal spans. It cuts between
 * the entries of the lists in the top-level object, and before and after long strings. A message
 * that is sent again gives the same spans, even if a cache mark (`cache_control`) next to its text
 * moves. The joined spans equal the body, byte for byte. A body that is not JSON is cut as well, at
 * arbitrary places.
 *
 * @returns the offsets at which the spans end, the last one being the length of the body
 */
function spanEnds(body: Buffer): readonly number[] {
  const ends: number[] = [];
  let begun = 0;
  const border = (at: number, least = LEAST_SPAN): void => {
    if (at - begun < least) return;
    ends.push(at);
    begun = at;
  };
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) {
      const end = endOfString(body, at + 1);
      if (end - at > LONG_STRING) {
        border(at + 1, 1);
        border(end, 1);
      }
      at = end;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth += 1;
      if (depth <= DEEPEST_BORDER && byte === OPEN_LIST) border(at + 1);
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    else if (byte === COMMA && depth <= DEEPEST_BORDER) border(at + 1);
  }
  if (begun < body.length || ends.length === 0) ends.push(body.length);
  return ends;
}

/** Returns the spans of a body, in order. They share its memory. */
export function bodySpans(body: Buffer): readonly Buffer[] {
  let begun = 0;
  return spanEnds(body).map((end) => {
    const span = body.subarray(begun, end);
    begun = end;
    return span;
  });
}
