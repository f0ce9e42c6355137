import { signal } from '@preact/signals';
import { credentials, refusedBy } from './access.js';
import { ask } from './ask.js';
import { eventsIn, withChange } from './strip-changes.js';
import type { Strip, StripChange } from './wire.js';

/** A followed session, as of its last event. */
export interface Followed {
  readonly session: string;
  readonly strip: Strip;
  readonly isConnected: boolean;
}

/** The followed session; undefined if none. */
export const followed = signal<Followed | undefined>(undefined);

const AGAIN_MS = 1_000;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Resolves once the page is visible or the signal aborts. */
function seen(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
  });
}

function take(session: string, strip: Strip, isConnected: boolean): Strip {
  followed.value = { session, strip, isConnected };
  return strip;
}

/**
 * Reads one stream to its end. `onStrip` receives each new state. Throws Refused if the server
 * rejects the stream.
 */
async function read(
  session: string,
  from: Strip,
  { signal, onStrip }: { signal: AbortSignal; onStrip: (strip: Strip) => void },
) {
  const response = await fetch(`/v1/sessions/${encodeURIComponent(session)}/events`, {
    headers: { ...credentials(), 'last-event-id': String(from.basis.tx_id ?? 0) },
    signal,
  });
  if (!response.ok || response.body === null) throw await refusedBy(response);
  onStrip(from);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let [text, strip] = ['', from];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const { events, rest } = eventsIn(text + value);
    text = rest;
    for (const { name, data } of events)
      if (name === 'change') strip = withChange(strip, JSON.parse(data) as StripChange);
    if (events.length > 0) onStrip(strip);
  }
}

async function run(session: string, signal: AbortSignal): Promise<void> {
  let strip: Strip | undefined;
  while (!signal.aborted) {
    await seen(signal);
    // A hidden page closes its connection, because a browser has only six per server.
    const connection = new AbortController();
    const end = (): void => connection.abort();
    const onVisible = (): void => {
      if (document.hidden) end();
    };
    signal.addEventListener('abort', end);
    document.addEventListener('visibilitychange', onVisible);
    try {
      strip ??= take(session, await ask<Strip>('/v1/strip', { session }), false);
      await read(session, strip, {
        signal: connection.signal,
        onStrip: (next) => {
          if (!signal.aborted) strip = take(session, next, true);
        },
      });
    } catch {
      // The changes received so far are kept. The next stream resumes after them.
    } finally {
      signal.removeEventListener('abort', end);
      document.removeEventListener('visibilitychange', onVisible);
    }
    if (signal.aborted) return;
    if (strip !== undefined) take(session, strip, false);
    if (!document.hidden) await pause(AGAIN_MS, signal);
  }
}

/**
 * Follows a session and keeps its strip in `followed` up to date. After a lost connection, it
 * resumes with the last event. The returned function stops following.
 */
export function follow(session: string): () => void {
  const controller = new AbortController();
  void run(session, controller.signal);
  return () => {
    controller.abort();
    if (followed.value?.session === session) followed.value = undefined;
  };
}
