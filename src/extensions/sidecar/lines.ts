import type { Readable } from 'node:stream';

/** The lines of a stream of text: between line feeds alone, because JSON may hold every other character that some take for a line's end. */
export async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of input.setEncoding('utf8') as AsyncIterable<string>) {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      yield rest + chunk.slice(from, end);
      rest = '';
      from = end + 1;
    }
    rest += chunk.slice(from);
  }
  if (rest !== '') yield rest;
}
