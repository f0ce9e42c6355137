import { credentials, refusedBy } from './access.js';
import { askAnew } from './ask.js';

/** Asks the server to do something, on behalf of the person who looks at the page; what was answered before is asked anew from then on. Throws Refused. */
export async function act<T>(path: string, body: object): Promise<T> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { ...credentials(), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await refusedBy(response);
  askAnew();
  return (await response.json()) as T;
}

/** The address of what is done to a session. */
export const actionPath = (session: string, what: 'sets' | 'undo' | 'fork' | 'restore'): string =>
  `/v1/sessions/${encodeURIComponent(session)}/${what}`;
