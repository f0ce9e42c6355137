/** Where the secret lies that this page was given: in the storage of its own origin, which no other server of this machine is sent or can read. */
const KEPT_AS = 'palimpsest-secret';

/** Thrown where the server refuses a question; `code` is that of its problem. */
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

/** The refusal that an answer is; a body that is no problem says nothing more than its status. */
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

/** Hands in the token of the address, if there is one, and takes it out of the address bar and the history. Throws Refused where it is not taken. */
export async function enter(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  await handIn(token);
}

/** Hands in a token that a reader typed. Throws Refused where it is not taken. */
export function enterWith(token: string): Promise<void> {
  return handIn(token.trim());
}

/** What each question brings along. */
export function credentials(): Readonly<Record<string, string>> {
  const secret = localStorage.getItem(KEPT_AS);
  return secret === null ? {} : { authorization: `Bearer ${secret}` };
}
