import { GatewayError } from './gateway-error.js';
import { UPSTREAMS } from './wires.js';

const KNOWN = Object.keys(UPSTREAMS).join(', ');

function baseOf(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new GatewayError(
      'bad-upstream',
      `${JSON.stringify(text)} is no base address for ${name}; give one such as https://api.example.com`,
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
      throw new GatewayError('bad-upstream', `${JSON.stringify(pair)} is not of the form NAME=URL with ${KNOWN}`);
    bases.set(name, baseOf(name, url));
  }
  return bases;
}
