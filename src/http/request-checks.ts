import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Why a request is refused before anything reads it. */
export interface Refusal {
  readonly status: 401 | 403;
  readonly message: string;
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** Equality that takes the same time wherever the difference is. */
function sameSecret(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/**
 * Judges a request by its headers: the Host must be this machine's loopback (a page that rebinds its own name to 127.0.0.1 is refused), an Origin
 * likewise, and the bearer token must be right where one is asked for (decision H6).
 */
export function refusal({ headers }: Pick<IncomingMessage, 'headers'>, token: string | undefined): Refusal | undefined {
  const host = hostnameOf(`http://${headers.host ?? ''}`);
  if (host === undefined || !LOOPBACK.has(host))
    return { status: 403, message: 'Forbidden: the Host header must name 127.0.0.1 or localhost' };
  const { origin } = headers;
  if (origin !== undefined && !LOOPBACK.has(hostnameOf(origin) ?? ''))
    return { status: 403, message: 'Forbidden: this Origin is not allowed' };
  if (token === undefined) return undefined;
  const given = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (given === undefined || !sameSecret(given.trim(), token))
    return { status: 401, message: 'Unauthorized: give the token as "Authorization: Bearer TOKEN"' };
  return undefined;
}
