import { isAbsolute } from 'node:path';
import { addressesIn } from '../values/address-list.js';
import { XtdbError } from './errors.js';

/**
 * Where a node listens: a unix domain socket, TCP on loopback with a bearer token, or the address of a node that someone else runs.
 * Origins are `http://host:port` or `https://host:port`, without a path.
 */
export type NodeAddress =
  | { readonly kind: 'unix'; readonly socketPath: string; readonly token?: string; readonly isListed?: boolean }
  | { readonly kind: 'tcp'; readonly origin: string; readonly token: string }
  /** `prefix` is the path before `/_xtdb`, such as `/db`; `isListed` says that there are other nodes over the same log. */
  | { readonly kind: 'url'; readonly origin: string; readonly prefix?: string; readonly token?: string; readonly isListed?: boolean };

/** Whether there are other nodes to turn to when this one fails. */
export const isListed = (address: NodeAddress | undefined): boolean =>
  address !== undefined && address.kind !== 'tcp' && address.isListed === true;

/** Whether the next request may be answered by another node than the last: one of a list, or whatever stands behind an address of the web. */
export const mayMove = (address: NodeAddress | undefined): boolean => address?.kind === 'url' || isListed(address);

/** The path before `/_xtdb` at an address; empty where there is none. */
export const prefixOf = (address: NodeAddress): string => (address.kind === 'url' ? (address.prefix ?? '') : '');

/** An address as it may stand in a message: without the token. */
export const describeAddress = (address: NodeAddress): string =>
  address.kind === 'unix' ? `unix:${address.socketPath}` : `${address.origin}${prefixOf(address)}`;

// The text itself stands in no message: what does not belong into it is most often a secret.
const FORMS = 'http://host:3000, https://host/path or unix:/path/to/socket';

/**
 * The address of a node that someone else runs, from a setting such as `XTDB_URL`: http or https, perhaps with a path before `/_xtdb`, or `unix:` and the absolute path
 * of a socket. A trailing slash or `/_xtdb` is taken off.
 *
 * @throws {XtdbError} `bad-request` if the text is none of these, or names a user, a query or a fragment
 */
export function parseNodeUrl(text: string): NodeAddress {
  if (/^unix:/i.test(text)) {
    const socketPath = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
    if (isAbsolute(socketPath) && !socketPath.startsWith('//') && !socketPath.includes('\0')) return { kind: 'unix', socketPath };
    throw new XtdbError('bad-request', `The node's address must look like ${FORMS}; after unix: there is no absolute path.`);
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new XtdbError('bad-request', `The node's address must look like ${FORMS}; it is neither a http or https address nor a socket.`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new XtdbError(
      'bad-request',
      `The node's address must look like ${FORMS}, without user, query or fragment. A token belongs into XTDB_TOKEN_FILE or XTDB_TOKEN.`,
    );
  }
  const prefix = url.pathname.replace(/\/+$/, '').replace(/\/_xtdb$/, '');
  return { kind: 'url', origin: url.origin, ...(prefix === '' ? {} : { prefix }) };
}

/**
 * The addresses of one node or of several over one log, from a setting such as `XTDB_URL`: each as for `parseNodeUrl`, with commas between them.
 * @throws {XtdbError} `bad-request` if one is none
 */
export function parseNodeUrls(text: string): readonly NodeAddress[] {
  const addresses = addressesIn(text).map((one) => parseNodeUrl(one.trim()));
  return addresses.length === 1 ? addresses : addresses.map((address) => ({ ...address, isListed: true }));
}

/**
 * A bearer token out of a variable or a file, without the white space around it; it never stands in a message.
 * @throws {XtdbError} `bad-request` if it is empty, or holds what cannot stand in a header; `where` says where it comes from
 */
export function parseToken(text: string, where: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const what = token === '' ? 'is empty' : 'is not one word of printable ASCII characters';
  throw new XtdbError('bad-request', `The token in ${where} ${what}. Put there what the node's Authorization header has after "Bearer ".`);
}
