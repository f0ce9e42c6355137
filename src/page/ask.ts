import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { credentials, noteTrouble, Refused, refusedBy, unreachable } from './access.js';
import { VIEWS, type ViewName } from './address.js';

/** The parameters of a question; undefined ones are left out. */
export type Parameters = Readonly<Record<string, string | number | undefined>>;

/** Maximum number of cached answers. A view requests most answers of the previous view again. */
const MOST_KEPT = 60;
/** Maximum number of retries while a server is starting or busy. */
const RETRIES = 30;
const RETRY_MS = 1_000;

/** A source of answers: a server, or a file that contains them. */
export interface AnswerSource {
  /** Whether the source is a server. Without a server, features that need one are hidden. */
  readonly isServed: boolean;
  /** Returns the answer as JSON. Throws Refused. */
  ask(path: string, parameters: Parameters): Promise<unknown>;
}

/** A cached answer: its promise, and its value once loaded. */
interface KeptAnswer {
  readonly answer: Promise<unknown>;
  there?: { readonly value: unknown };
}

const kept = new Map<string, KeptAnswer>();

/** Caches an answer as the most recent one, and evicts the oldest. */
function keep(address: string, one: KeptAnswer): void {
  kept.delete(address);
  kept.set(address, one);
  for (const [oldest] of kept) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
}

function addressOf(path: string, parameters: Parameters): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  const query = new URLSearchParams(given).toString();
  return query === '' ? path : `${path}?${query}`;
}

async function fetched(address: string, left = RETRIES): Promise<unknown> {
  const response = await fetch(address, { headers: credentials() }).catch(() => undefined);
  const refused = response === undefined ? unreachable() : response.ok ? undefined : await refusedBy(response);
  noteTrouble(refused);
  if (refused === undefined) return response?.json();
  if (refused.status !== 503 || left === 0) throw refused;
  await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  return fetched(address, left - 1);
}

const SERVER: AnswerSource = { isServed: true, ask: (path, parameters) => fetched(addressOf(path, parameters)) };
let source = SERVER;

/** Sets the source of answers; the default is a server. */
export function answerFrom(other: AnswerSource): void {
  source = other;
}

/** Whether there is a server. Without one, only the file's content is available, read-only. */
export const isServed = (): boolean => source.isServed;

/** Views that need a database. A page in a file hides them, or explains why in the main row. */
const SERVED_VIEWS: ReadonlySet<ViewName> = new Set(['query']);

/** Returns the available views, in navigation order. */
export const offeredViews = (): readonly ViewName[] =>
  (Object.keys(VIEWS) as ViewName[]).filter((name) => isServed() || !SERVED_VIEWS.has(name));

/** Returns the answer to a question, from the cache if possible. Throws Refused. */
export function ask<T>(path: string, parameters: Parameters = {}): Promise<T> {
  const address = addressOf(path, parameters);
  const known = kept.get(address);
  if (known !== undefined) {
    keep(address, known);
    return known.answer as Promise<T>;
  }
  const one: KeptAnswer = { answer: source.ask(path, parameters) };
  keep(address, one);
  one.answer.then(
    (value) => {
      one.there = { value };
    },
    () => {
      if (kept.get(address) === one) kept.delete(address);
    },
  );
  return one.answer as Promise<T>;
}

/** Caches a known answer for a question, such as the same question with an explicit moment. */
export function answers(path: string, parameters: Parameters, value: unknown): void {
  keep(addressOf(path, parameters), { answer: Promise.resolve(value), there: { value } });
}

/** Returns the current answer without using the cache. Throws Refused. */
export function askFresh<T>(path: string, parameters: Parameters = {}): Promise<T> {
  return source.ask(path, parameters) as Promise<T>;
}

/** Returns the bytes of a file, without their compression if `unpacks`. Throws Refused. */
export async function fileAt(path: string, parameters: Parameters, { unpacks }: { unpacks: boolean }): Promise<Blob> {
  const response = await fetch(addressOf(path, parameters), { headers: credentials() }).catch(() => undefined);
  if (response === undefined) throw unreachable();
  if (!response.ok || response.body === null) throw await refusedBy(response);
  const { body } = response;
  return new Response(unpacks ? body.pipeThrough(new DecompressionStream('gzip')) : body).blob();
}

/** Number of times that the cache was cleared. */
const cleared = signal(0);

/**
 * Clears the cache of answers. Views ask their questions again, and keep the old answers until the
 * new ones arrive.
 */
export function clearAnswers(): void {
  kept.clear();
  cleared.value += 1;
}

/** An answer that is loaded, pending or refused. */
export type Answered<T> =
  | { readonly state: 'waiting' }
  | { readonly state: 'there'; readonly value: T }
  | { readonly state: 'refused'; readonly refused: Refused };

/**
 * Asks a question while a view is shown. An undefined path asks no question. Ignores an answer that
 * arrives after the question has changed. While `keeps` is unchanged, the previous answer stays
 * until the next one is loaded.
 */
export function useAnswer<T>(
  path: string | undefined,
  parameters: Parameters = {},
  { keeps }: { readonly keeps?: string | undefined } = {},
): Answered<T> {
  const address = path === undefined ? undefined : addressOf(path, parameters);
  const [answered, setAnswered] = useState<{
    readonly address: string | undefined;
    readonly keeps?: string | undefined;
    readonly answer: Answered<T>;
  }>();
  useEffect(() => {
    if (path === undefined) return undefined;
    let isWanted = true;
    const take = (answer: Answered<T>): void => {
      if (isWanted) setAnswered({ address, keeps, answer });
    };
    ask<T>(path, parameters).then(
      (value) => take({ state: 'there', value }),
      (error: unknown) => {
        take({ state: 'refused', refused: error instanceof Refused ? error : unreachable() });
      },
    );
    return () => {
      isWanted = false;
    };
  }, [address, cleared.value]);
  const there = address === undefined ? undefined : kept.get(address)?.there;
  // A cached answer needs no loading state, which would unmount the view.
  if (there !== undefined) return { state: 'there', value: there.value as T };
  const isKept = keeps !== undefined && answered?.keeps === keeps && answered.answer.state === 'there';
  return answered !== undefined && (answered.address === address || isKept) ? answered.answer : { state: 'waiting' };
}
