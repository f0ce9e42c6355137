import { addressText } from '../address.js';
import { AnswerBox } from '../answer-box.js';
import { useAnswer } from '../ask.js';
import { place, refine } from '../place.js';
import { oneLine } from '../shown-text.js';
import { VirtualList } from '../virtual-list.js';
import type { SessionRow, Sessions } from '../wire.js';
import { counted, shortTime } from '../words.js';

const ROW_PX = 34;
const LIST_PX = 720;

/**
 * Whether a session passes the address's filters: a part of its title or id, the earliest day of
 * use, only forks.
 */
function passes(
  { id, title = '', last_activity: last, parent }: SessionRow,
  { q = '', since = '', forks }: Readonly<Record<string, string>>,
): boolean {
  return (
    `${title} ${id}`.toLowerCase().includes(q.toLowerCase()) &&
    last.slice(0, 10) >= since &&
    (forks === undefined || parent !== undefined)
  );
}

function Row({ session }: { readonly session: SessionRow }) {
  const { id, title, turns, steps, last_activity: last, parent, open_here: isOpen } = session;
  return (
    <div class="session-row">
      <a href={addressText({ view: 'strip', of: { session: id } })} title={oneLine(id)}>
        {oneLine(title ?? id)}
      </a>
      <span>{counted(turns)} turns</span>
      <span>{counted(steps)} steps</span>
      <span>{shortTime(last)}</span>
      <span>
        {isOpen && 'open '}
        {parent !== undefined && `fork of ${oneLine(parent.session)} at step ${parent.at}`}
      </span>
    </div>
  );
}

/** Lists all sessions, latest first, with filters in the address. */
export function SessionsView() {
  const { of } = place.value;
  const answer = useAnswer<Sessions>('/v1/sessions');
  return (
    <>
      <h1>Sessions</h1>
      <div class="filters">
        <label>
          Name <input type="search" value={of.q ?? ''} onInput={(event) => refine({ q: event.currentTarget.value })} />
        </label>
        <label>
          Used since{' '}
          <input type="date" value={of.since ?? ''} onInput={(event) => refine({ since: event.currentTarget.value })} />
        </label>
        <label>
          <input
            type="checkbox"
            checked={of.forks !== undefined}
            onChange={(event) => refine({ forks: event.currentTarget.checked ? 1 : undefined })}
          />{' '}
          Forks only
        </label>
      </div>
      <AnswerBox answer={answer}>
        {({ sessions }) => {
          const found = sessions.filter((session) => passes(session, of));
          return (
            <>
              <p class="note" role="status">
                {counted(found.length)} of {counted(sessions.length)} sessions
              </p>
              <VirtualList
                label="Sessions"
                count={found.length}
                rowHeight={ROW_PX}
                height={LIST_PX}
                row={(i) => {
                  const session = found[i];
                  return session === undefined ? null : <Row session={session} />;
                }}
              />
            </>
          );
        }}
      </AnswerBox>
    </>
  );
}
