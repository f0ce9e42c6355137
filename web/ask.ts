import { useEffect, useState } from 'preact/hooks';
import { credentials, Refused, refusedBy } from './access.js';
import { VIEWS, type ViewName } from './address.js';

/** The parameters of a question; those that are undefined are left out. */
export type Parameters = Readonly<Record<string, string | number | undefined>>;

/** Answers that are kept: most are asked again by the next view. */
const MOST_KEPT = 60;
/** How often a server that is starting, or busy, is asked again, and how long is waited before, milliseconds. */
const RETRIES = 30;
const RETRY_MS = 1_000;

/** What answers questions: a server, or a file that has the answers in it. */
export interface AnswerSource {
  /** Whether there is a server behind it: what needs one is not offered where there is none. */
  readonly isServed: boolean;
  /** The answer as JSON has it. Throws Refused. */
  ask(path: string, parameters: Parameters): Promise<unknown>;
}

/** What is kept of a question: its answer, and what it said once it is there. */
interface KeptAnswer {
  readonly answer: Promise<unknown>;
  there?: { readonly value: unknown };
}

const kept = new Map<string, KeptAnswer>();

/** Keeps an answer as the one that was asked for last, and lets go of the oldest. */
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
  const response = await fetch(address, { headers: credentials() });
  if (response.ok) return response.json();
  const refused = await refusedBy(response);
  if (refused.status !== 503 || left === 0) throw refused;
  await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  return fetched(address, left - 1);
}

const SERVER: AnswerSource = { isServed: true, ask: (path, parameters) => fetched(addressOf(path, parameters)) };
let source = SERVER;

/** Says what answers from now on; a server where nobody says it. */
export function answerFrom(other: AnswerSource): void {
  source = other;
}

/** Whether there is a server: without one nothing changes, and only what the file holds is answered. */
export const isServed = (): boolean => source.isServed;

/** Views that ask a database, or compare with what no file of one session holds. */
const SERVED_VIEWS: ReadonlySet<ViewName> = new Set(['files', 'compare']);

/** The views that can be shown, in the order of the page's navigation. */
export const offeredViews = (): readonly ViewName[] =>
  (Object.keys(VIEWS) as ViewName[]).filter((name) => isServed() || !SERVED_VIEWS.has(name));

/** The answer to a question; one that was asked before is answered at once. Throws Refused. */
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

/** Says that an answer is that to another question too: of a moment that it names itself. */
export function answers(path: string, parameters: Parameters, value: unknown): void {
  keep(addressOf(path, parameters), { answer: Promise.resolve(value), there: { value } });
}

/** The answer as it is now: it is neither kept nor taken from what was asked before. Throws Refused. */
export function askFresh<T>(path: string, parameters: Parameters = {}): Promise<T> {
  return source.ask(path, parameters) as Promise<T>;
}

/** Forgets every answer: what is asked next is asked of the server. */
export function askAnew(): void {
  kept.clear();
}

/** An answer that is there, on its way, or refused. */
export type Answered<T> =
  | { readonly state: 'waiting' }
  | { readonly state: 'there'; readonly value: T }
  | { readonly state: 'refused'; readonly refused: Refused };

/**
 * Asks a question while a view is shown; undefined asks none. An answer that comes after the question has changed is passed over. `keeps`: the answer before stays until the
 * next one is there, as long as this is the same.
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
        const refused =
          error instanceof Refused
            ? error
            : new Refused('unreachable', 0, 'the server does not answer; is it still running?');
        take({ state: 'refused', refused });
      },
    );
    return () => {
      isWanted = false;
    };
  }, [address]);
  const there = address === undefined ? undefined : kept.get(address)?.there;
  // What is there already needs no moment of waiting, in which the view would be taken down.
  if (there !== undefined) return { state: 'there', value: there.value as T };
  const isKept = keeps !== undefined && answered?.keeps === keeps && answered.answer.state === 'there';
  return answered !== undefined && (answered.address === address || isKept) ? answered.answer : { state: 'waiting' };
}
