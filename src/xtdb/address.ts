import { isAbsolute } from 'node:path';
import { addressesIn } from '../values/address-list.js';
import { XtdbError } from './errors.js';

/**
 * Where a node listens: a Unix domain socket, TCP on loopback with a bearer token, or the URL of a
 * remote node. Another program runs a remote node. Origins are `http://host:port` or
 * `https://host:port`, without a path.
 */
export type NodeAddress =
  | { readonly kind: 'unix'; readonly socketPath: string; readonly token?: string; readonly isListed?: boolean }
  | { readonly kind: 'tcp'; readonly origin: string; readonly token: string }
  /**
   * `prefix` is the path before `/_xtdb`, such as `/db`. `isListed` means that the setting names
   * other nodes over the same log.
   */
  | {
      readonly kind: 'url';
      readonly origin: string;
      readonly prefix?: string;
      readonly token?: string;
      readonly isListed?: boolean;
    };

/** Returns whether other nodes can take over when this one fails. */
export const isListed = (address: NodeAddress | undefined): boolean =>
  address !== undefined && address.kind !== 'tcp' && address.isListed === true;

/**
 * Returns whether another node may answer the next request: one of a list, or another node behind
 * the same URL.
 */
export const mayMove = (address: NodeAddress | undefined): boolean => address?.kind === 'url' || isListed(address);

/** Returns the path before `/_xtdb` of an address, or an empty string. */
export const prefixOf = (address: NodeAddress): string => (address.kind === 'url' ? (address.prefix ?? '') : '');

/** Formats an address for messages, without the token. */
export const describeAddress = (address: NodeAddress): string =>
  address.kind === 'unix' ? `unix:${address.socketPath}` : `${address.origin}${prefixOf(address)}`;

// Messages omit the text itself: an invalid part is usually a secret.
const FORMS = 'http://host:3000, https://host/path or unix:/path/to/socket';

/**
 * Parses the address of a remote node from a setting such as `XTDB_URL`. It is an http or https
 * URL, optionally with a path before `/_xtdb`, or `unix:` and the absolute path of a socket. A
 * trailing slash or `/_xtdb` is removed.
 *
 * @throws {XtdbError} `bad-request` if the text has another form, or contains a user, a query or a
 *   fragment
 */
export function parseNodeUrl(text: string): NodeAddress {
  if (/^unix:/i.test(text)) {
    const socketPath = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
    if (isAbsolute(socketPath) && !socketPath.startsWith('//') && !socketPath.includes('\0'))
      return { kind: 'unix', socketPath };
    throw new XtdbError(
      'bad-request',
      `The node's address must look like ${FORMS}; the part after unix: is no absolute path.`,
    );
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new XtdbError(
      'bad-request',
      `The node's address must look like ${FORMS}; it is neither an http or https address nor a socket.`,
    );
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new XtdbError(
      'bad-request',
      `The node's address must look like ${FORMS}, without user, query or fragment. ` +
        'A token belongs in XTDB_TOKEN_FILE or XTDB_TOKEN.',
    );
  }
  const prefix = url.pathname.replace(/\/+$/, '').replace(/\/_xtdb$/, '');
  return { kind: 'url', origin: url.origin, ...(prefix === '' ? {} : { prefix }) };
}

/**
 * Parses the addresses of one or more nodes over one log from a setting such as `XTDB_URL`. They
 * are separated by commas; see `parseNodeUrl` for their form.
 * @throws {XtdbError} `bad-request` if one is invalid
 */
export function parseNodeUrls(text: string): readonly NodeAddress[] {
  const addresses = addressesIn(text).map((one) => parseNodeUrl(one.trim()));
  return addresses.length === 1 ? addresses : addresses.map((address) => ({ ...address, isListed: true }));
}

/**
 * Parses a bearer token from a variable or a file and trims white space. `where` names its origin.
 * The token never appears in a message.
 * @throws {XtdbError} `bad-request` if it is empty or contains characters that a header cannot
 *   carry
 */
export function parseToken(text: string, where: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const what = token === '' ? 'is empty' : 'is not one word of printable ASCII characters';
  throw new XtdbError(
    'bad-request',
    `The token in ${where} ${what}. Put there what the node's Authorization header has after "Bearer ".`,
  );
}
