import { GatewayError } from './gateway-error.js';
import { UPSTREAMS } from './wires.js';

const KNOWN = Object.keys(UPSTREAMS).join(', ');

function baseOf(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && `${url.username}${url.password}${url.search}${url.hash}` === '';
  // Leaves the address out of the message, because it may contain a password or a key.
  if (!isPlain || !/^https?:$/.test(url.protocol))
    throw new GatewayError(
      'bad-upstream',
      `the address given for ${name} is not a base address; give one such as https://api.example.com, ` +
        'without a user, a password or a query',
    );
  return url;
}

/**
 * Returns the base address of each upstream. `given` are values of the form NAME=URL, which replace
 * the defaults.
 *
 * @throws {GatewayError} `bad-upstream`
 */
export function upstreamBases(given: readonly string[] = []): ReadonlyMap<string, URL> {
  const bases = new Map(Object.entries(UPSTREAMS).map(([name, base]) => [name, new URL(base)]));
  for (const pair of given) {
    const [, name = '', url = ''] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
    if (!bases.has(name))
      throw new GatewayError(
        'bad-upstream',
        `an upstream${name === '' ? '' : ` for ${JSON.stringify(name)}`} is not of the form NAME=URL with ${KNOWN}`,
      );
    bases.set(name, baseOf(name, url));
  }
  return bases;
}
