import { from } from './place.js';
import { oneLine } from './shown-text.js';
import type { Actor } from './wire.js';

const NAMES: Readonly<Record<Actor['kind'], string>> = {
  agent: 'agent',
  person: 'person',
  git: 'git',
  editor: 'editor',
  unknown: 'unknown',
};

/** Shows who made a version of a file, with a link to the call. */
export function ActorLink({ by }: { readonly by: Actor | null | undefined }) {
  if (by === null || by === undefined) return <span class="soft">not recorded</span>;
  const { kind, session, turn, step, name, commit, why } = by;
  const isCall = session !== null && step !== null;
  return (
    <span class="actor" title={oneLine(why, 300)}>
      <span class={`chip ${kind === 'agent' ? 'note-of' : kind === 'unknown' ? '' : 'warn'}`}>{NAMES[kind]}</span>{' '}
      {commit !== null && <code title={commit}>{commit.slice(0, 10)}</code>}{' '}
      {isCall && <a href={from('conversation', { session, step })}>{oneLine(name ?? `in turn ${turn ?? step}`, 80)}</a>}
    </span>
  );
}
