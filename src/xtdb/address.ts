import { XtdbError } from './errors.js';

/**
 * Where a node listens: a unix domain socket, TCP on loopback with a bearer token, or the plain address of a node that someone else runs.
 * Origins are `http://host:port` or `https://host:port`, without a path.
 */
export type NodeAddress =
  | { readonly kind: 'unix'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly origin: string; readonly token: string }
  | { readonly kind: 'url'; readonly origin: string };

/** An address as it may stand in a message: without the token. */
export const describeAddress = (address: NodeAddress): string => (address.kind === 'unix' ? `unix:${address.socketPath}` : address.origin);

/**
 * The address of a node that someone else runs, from a setting such as `XTDB_URL`. A trailing slash or `/_xtdb` is taken off.
 *
 * @throws {XtdbError} `bad-request` if the text is no http or https address, or names a user, a path, a query or a fragment
 */
export function parseNodeUrl(text: string): NodeAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new XtdbError('bad-request', `The node's address must look like http://host:3000; it is not a http or https address.`);
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '' || (path !== '' && path !== '/_xtdb')) {
    throw new XtdbError(
      'bad-request',
      "The node's address must be an origin such as http://host:3000, without user, path, query or fragment.",
    );
  }
  return { kind: 'url', origin: url.origin };
}
