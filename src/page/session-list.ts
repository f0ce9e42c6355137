import { type Answered, type Parameters, useAnswer } from './ask.js';
import type { SessionList, Sessions } from './wire.js';

/** Builds a list without titles and figures from a server's sessions. */
function plainList({ sessions }: Sessions, { text = '' }: Parameters): SessionList {
  const wanted = String(text).toLowerCase();
  const rows = sessions
    .filter(({ id }) => id.toLowerCase().includes(wanted))
    .map(({ id, turns, steps, last_activity: to, parent, open_here: open }) => ({
      id,
      title: '',
      agent: null,
      model: null,
      folder: null,
      from: null,
      to,
      turns,
      steps,
      parent: parent === undefined ? null : { ...parent, kind: 'fork' as const, call: null },
      open,
      figures: null,
      with_sub_agents: null,
      check: null,
    }));
  const basis = { valid_time: null, tx_id: null, tx_time: null };
  return { basis, total: rows.length, counted: rows.length, prices_as_of: '', sessions: rows };
}

/**
 * Returns the list of sessions. Only the owner of the data folder sees titles and figures. A server
 * of several agents has a list without them.
 */
export function useSessionList(parameters: Parameters): Answered<SessionList> {
  const plain = useAnswer<Sessions>('/v1/sessions');
  const isOwner = plain.state === 'there' && plain.value.sessions.some(({ title }) => title !== undefined);
  const full = useAnswer<SessionList>(isOwner ? '/v1/list' : undefined, parameters, { keeps: 'list' });
  if (isOwner || plain.state !== 'there') return isOwner ? full : (plain as Answered<never>);
  return { state: 'there', value: plainList(plain.value, parameters) };
}
