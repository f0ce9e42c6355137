import { credentials, refusedBy } from './access.js';
import { clearAnswers } from './ask.js';

/**
 * Sends a change to the server, as made by the person who uses the page. Clears the cache of
 * answers. Throws Refused.
 */
export async function act<T>(path: string, body: object): Promise<T> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { ...credentials(), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await refusedBy(response);
  clearAnswers();
  return (await response.json()) as T;
}

/** Returns the path of a change to a session. */
export const actionPath = (session: string, what: 'sets' | 'undo' | 'fork' | 'restore' | 'notes'): string =>
  `/v1/sessions/${encodeURIComponent(session)}/${what}`;
