/**
 * Key of the page's secret in its origin's storage, which other servers of this machine neither
 * receive nor read.
 */
const KEPT_AS = 'palimpsest-secret';

/** Thrown if the server rejects a question; `code` is that of its problem. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Converts a response to a Refused error. A body that is not a problem leaves only the status. */
export async function refusedBy(response: Response): Promise<Refused> {
  const problem: unknown = await response.json().catch(() => undefined);
  const { code = 'unknown', detail = response.statusText } = (problem ?? {}) as {
    readonly code?: string;
    readonly detail?: string;
  };
  return new Refused(code, response.status, detail);
}

async function handIn(token: string): Promise<void> {
  const response = await fetch('/review/enter', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (!response.ok) throw await refusedBy(response);
  const { secret } = (await response.json()) as { readonly secret: string };
  localStorage.setItem(KEPT_AS, secret);
}

/**
 * Exchanges the token of the address, if there is one, and removes it from the address bar and the
 * history. Throws Refused for a rejected token.
 */
export async function enter(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  await handIn(token);
}

/** Exchanges a typed token. Throws Refused for a rejected token. */
export function enterWith(token: string): Promise<void> {
  return handIn(token.trim());
}

/** Returns the headers of each question. */
export function credentials(): Readonly<Record<string, string>> {
  const secret = localStorage.getItem(KEPT_AS);
  return secret === null ? {} : { authorization: `Bearer ${secret}` };
}
