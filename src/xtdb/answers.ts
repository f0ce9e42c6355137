import { EdnError } from '../edn/errors.js';
import { parse } from '../edn/parse.js';
import { decodeForeignTransit, decodeTransit } from '../edn/transit.js';
import { EdnMap, type EdnValue, Keyword } from '../edn/values.js';
import { XtdbError, type XtdbErrorCode } from './errors.js';

/** The media types that we request from the database. */
export type MediaType = 'application/edn' | 'application/transit+json';

/** A raw HTTP response, not yet validated. */
export interface RawAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

const DECODERS: Readonly<Record<MediaType, (text: string) => EdnValue>> = {
  'application/edn': parse,
  'application/transit+json': decodeTransit,
};

/**
 * Returns the value of a response; `undefined` if the node reports that the requested item does not
 * exist.
 *
 * A success counts only if its body is one complete form in a requested media type.
 *
 * @param what the method and path of the request, for messages
 * @throws {XtdbError}
 */
export function interpretAnswer(
  answer: RawAnswer,
  what: string,
  { isForeign = false }: { readonly isForeign?: boolean | undefined } = {},
): EdnValue | undefined {
  if (answer.status === 200 || answer.status === 202) return decodeBody(answer, what, isForeign);
  if (answer.status === 404) {
    // If the endpoint exists, the body names the missing item.
    if (answer.text.trim() !== '' && mediaTypeOf(answer) !== undefined) return undefined;
    throw new XtdbError('bad-response', `${what}: 404, no such endpoint. Is this an XTDB 1.24 node?`, {
      status: 404,
    });
  }
  throw refusal(answer, what);
}

/** Returns the failure that our front reports behind rows that it already sent. */
export function refusalIn(trailers: Readonly<Record<string, unknown>>): Pick<RawAnswer, 'status' | 'text'> | undefined {
  const [, status, body = ''] = /^(\d{3}) ([\w+/=]*)$/.exec(String(trailers['front-refusal'] ?? '')) ?? [];
  return status === undefined ? undefined : { status: Number(status), text: Buffer.from(body, 'base64').toString() };
}

function mediaTypeOf(answer: RawAnswer): MediaType | undefined {
  const media = answer.contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return Object.hasOwn(DECODERS, media) ? (media as MediaType) : undefined;
}

function decodeBody(answer: RawAnswer, what: string, isForeign: boolean): EdnValue {
  const { status } = answer;
  if (answer.text === '') throw new XtdbError('bad-response', `${what}: ${status} with an empty body.`, { status });
  const media = mediaTypeOf(answer);
  if (media === undefined) {
    throw new XtdbError(
      'bad-response',
      `${what}: ${status} in ${JSON.stringify(answer.contentType.slice(0, 60))}, which was not asked for.`,
      { status },
    );
  }
  try {
    const decode = isForeign && media === 'application/transit+json' ? decodeForeignTransit : DECODERS[media];
    return decode(answer.text);
  } catch (cause) {
    if (!(cause instanceof EdnError)) throw cause;
    throw new XtdbError('bad-response', `${what}: ${status}, but the answer cannot be read: ${cause.message}`, {
      status,
      cause,
    });
  }
}

const CODE_OF_STATUS: Readonly<Record<number, XtdbErrorCode>> = {
  400: 'bad-request',
  401: 'unauthorised',
  403: 'forbidden',
  405: 'bad-request',
  408: 'timeout',
  413: 'too-large',
  414: 'too-large',
  415: 'bad-request',
  429: 'busy',
  431: 'too-large',
  503: 'busy',
  504: 'timeout',
};

/** The parts of an error body that we read. The rest may repeat documents and queries. */
interface ErrorBody {
  readonly type: string;
  readonly key: string;
  readonly message: string;
  readonly className: string;
}

function refusal(answer: RawAnswer, what: string): XtdbError {
  const { status } = answer;
  const body = errorBody(answer);
  const code = refusalCode(status, body);
  const said = [body.key, body.message, body.className].filter((part) => part !== '').join(', ');
  return new XtdbError(code, `${what}: ${status}${said === '' ? '' : ` (${said})`}${NEXT_STEP[code] ?? ''}`, {
    status,
    ...(body.key === '' ? {} : { errorKey: body.key }),
  });
}

/**
 * Matches exceptions of a node whose log or document store is on an unavailable server. The node
 * still answers from its index.
 */
const STORE_AWAY =
  /^(?:java\.sql\.SQL(?:Non)?Transient\w*|org\.postgresql\..*|java\.net\..*|org\.apache\.kafka\.common\.errors\.\w*(?:Disconnect|Network|NotAvailable)\w*)$/;

function refusalCode(status: number, body: ErrorBody): XtdbErrorCode {
  if (body.type === 'node-out-of-sync') return 'out-of-sync';
  if (/ingester/i.test(`${body.type} ${body.key} ${body.message}`)) return 'ingester-failed';
  if (body.key === 'too-many-rows') return 'too-large';
  const known = CODE_OF_STATUS[status];
  if (known !== undefined) return known;
  if (status < 500) return status < 400 ? 'bad-response' : 'bad-request';
  if (/Timeout/.test(`${body.className} ${body.key}`)) return 'timeout';
  return STORE_AWAY.test(body.className) ? 'unreachable' : 'server-error';
}

const NEXT_STEP: Readonly<Partial<Record<XtdbErrorCode, string>>> = {
  unauthorised: '. Check the token of the node.',
  'ingester-failed': '. Restart the node; its log says why it stopped indexing.',
};

function errorBody(answer: RawAnswer): ErrorBody {
  const media = mediaTypeOf(answer);
  let value: EdnValue = null;
  if (media !== undefined) {
    try {
      value = DECODERS[media](answer.text);
    } catch {
      // The body may repeat an operation with unreadable forms. Then only the status counts.
    }
  }
  const field = (name: string): string => (value instanceof EdnMap ? scrub(value.get(name)) : '');
  return {
    type: field('xtdb.error/error-type'),
    key: field('xtdb.error/error-key'),
    message: field('xtdb.error/message') || field('error'),
    className: field('class'),
  };
}

const MAX_SAID = 200;

/**
 * Returns one short line without quoted data. Text behind a brace or in long quotes may come from a
 * user's document.
 */
function scrub(value: EdnValue | undefined): string {
  if (value instanceof Keyword) return value.name;
  if (typeof value !== 'string') return '';
  return value
    .replace(/[{[][\s\S]*$/, '…')
    .replace(/"[^"]{30,}("|$)/g, '"…"')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, MAX_SAID);
}
