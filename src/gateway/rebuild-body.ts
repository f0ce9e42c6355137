import { asList, asObject, type Json, parsedBody } from './json-facts.js';
import type { Wire } from './wires.js';

/** A logged request with the content of its answer. */
export interface Exchange {
  readonly wire: Wire;
  readonly body: Buffer;
  /** The blocks or items of the answer, as JSON. */
  readonly answer: Buffer;
}

/** A body that was rebuilt from several requests and their answers. */
interface RebuiltBody {
  readonly body: Buffer;
  /** Number of earlier requests that it contains. */
  readonly from: number;
}

/** Maximum number of requests in a rebuilt body. */
const MOST_EXCHANGES = 1_000;
/** Maximum total size of the parts of a rebuilt body, in bytes. */
const LARGEST = 64 * 1_048_576;

/** Returns the id of the answer that a body continues. */
function previousOf(wire: Wire, body: Json): string | undefined {
  const thread = asObject(body.thread);
  const id =
    wire === 'anthropic' ? thread.type === 'continue' && thread.previous_message_id : body.previous_response_id;
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** Returns the input of a Responses request as items. A plain text is a message of the user. */
const inputOf = ({ input }: Json): readonly unknown[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : Array.isArray(input) ? input : [];

/** Returns whether a body continues a conversation that only the provider has. */
const isOfConversation = ({ conversation }: Json): boolean => conversation !== undefined && conversation !== null;

interface Parsed {
  readonly body: Json;
  readonly answer: readonly unknown[];
}

/**
 * Joins the requests of a thread. Later settings replace earlier ones; only the first request has
 * the prompt and the tools.
 */
function wholeThread(earlier: readonly Parsed[], own: Json): Json {
  const messages = earlier.flatMap(({ body, answer }) => [
    ...asList(body.messages),
    { role: 'assistant', content: answer },
  ]);
  const settings: Json = Object.assign({}, ...earlier.map(({ body }) => body), own);
  return { ...settings, messages: [...messages, ...asList(own.messages)] };
}

/**
 * Joins Responses requests. The result has all earlier input and output, and only the last
 * request's settings.
 */
const wholeResponse = (earlier: readonly Parsed[], own: Json): Json => ({
  ...own,
  input: [...earlier.flatMap(({ body, answer }) => [...inputOf(body), ...answer]), ...inputOf(own)],
});

/**
 * Rebuilds the whole body of a request that continues an earlier answer: the messages and answers
 * of all requests before it, then its own messages. Returns undefined if the request is already
 * whole, or if `exchangeOf` does not have an earlier request or answer.
 */
export async function rebuiltBody(
  wire: Wire,
  request: Buffer,
  exchangeOf: (answer: string) => Promise<Exchange | undefined>,
): Promise<RebuiltBody | undefined> {
  const own = parsedBody(request);
  const earlier: Parsed[] = [];
  const known = new Set<string>();
  let size = request.length;
  let next = previousOf(wire, own);
  while (next !== undefined) {
    const found = known.has(next) || known.size >= MOST_EXCHANGES ? undefined : await exchangeOf(next);
    size += (found?.body.length ?? 0) + (found?.answer.length ?? 0);
    if (found === undefined || found.wire !== wire || size > LARGEST) return undefined;
    known.add(next);
    const body = parsedBody(found.body);
    if (isOfConversation(body)) return undefined;
    earlier.unshift({ body, answer: JSON.parse(found.answer.toString('utf8')) as readonly unknown[] });
    next = previousOf(wire, body);
  }
  if (earlier.length === 0 || isOfConversation(own)) return undefined;
  const whole = wire === 'anthropic' ? wholeThread(earlier, own) : wholeResponse(earlier, own);
  return { body: Buffer.from(JSON.stringify(whole)), from: earlier.length };
}
