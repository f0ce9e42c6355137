import { signal } from '@preact/signals';
import { nameDataFolder } from './command.js';

/**
 * Key of the page's secret in the storage of the page's origin. Other servers of this machine
 * cannot read that storage and are not sent its content.
 */
const KEPT_AS = 'palimpsest-secret';
/** Key of the server's data folder in the same storage. Copied commands name the folder. */
const DATA_KEPT_AS = 'palimpsest-data';

/** Thrown if the server rejects a question. `code` is the code of the server's problem report. */
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

/** Converts a response to a Refused error, from its problem report or only its status. */
export async function refusedBy(response: Response): Promise<Refused> {
  const problem: unknown = await response.json().catch(() => undefined);
  const { code = 'unknown', detail = response.statusText } = (problem ?? {}) as {
    readonly code?: string;
    readonly detail?: string;
  };
  return new Refused(code, response.status, detail);
}

/** Why the page cannot reach the server now, and what the reader can do. Undefined if it can. */
export const trouble = signal<
  { readonly kind: 'gone' | 'ended' | 'starting' | 'stopped'; readonly text: string } | undefined
>(undefined);

/** The error of a question that reached no server. */
export const unreachable = (): Refused =>
  new Refused(
    'unreachable',
    0,
    'The review server does not answer. Start `palimpsest review` again, and open the address that it prints.',
  );

/** Records the result of a question: its error, or undefined if it was answered. */
export function noteTrouble(refused: Refused | undefined): void {
  if (refused === undefined) trouble.value = undefined;
  else if (refused.status === 0) trouble.value = { kind: 'gone', text: refused.message };
  else if (refused.status === 401)
    trouble.value = {
      kind: 'ended',
      text: 'The server was restarted, or this address has expired. Open the last address of `palimpsest review`.',
    };
  else if (refused.status === 503) trouble.value = { kind: 'starting', text: refused.message };
  else if (refused.status === 502 || refused.status === 504) trouble.value = { kind: 'stopped', text: refused.message };
}

async function handIn(token: string): Promise<void> {
  const response = await fetch('/review/enter', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (!response.ok) throw await refusedBy(response);
  const { secret, data } = (await response.json()) as { readonly secret: string; readonly data: string | null };
  localStorage.setItem(KEPT_AS, secret);
  if (data === null) localStorage.removeItem(DATA_KEPT_AS);
  else localStorage.setItem(DATA_KEPT_AS, data);
  nameDataFolder(data ?? undefined);
}

/**
 * Exchanges the token of the address, if there is one, and removes it from the address bar and the
 * history. Throws Refused for a rejected token.
 */
export async function enter(): Promise<void> {
  nameDataFolder(localStorage.getItem(DATA_KEPT_AS) ?? undefined);
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
