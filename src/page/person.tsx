import { ownMember } from '../values/own-member.js';
import { act, actionPath } from './act.js';
import { askFresh, isServed } from './ask.js';
import { useSessionStrip } from './calls.js';
import { command } from './command.js';
import { from, place } from './place.js';
import { oneLine } from './shown-text.js';
import { StepByStep } from './step-by-step.js';
import { CopyButton } from './text-view.js';
import { useForeign } from './transcript-note.js';
import type { BandState, Forked, SetsChanged, StepUndone, VerbPrice } from './wire.js';
import { counted, shortId } from './words.js';

/** A person's verb on an object of a session. */
type SetVerb = 'activate' | 'deactivate' | 'pin' | 'unpin';

const OFFERED: Readonly<Record<BandState, readonly SetVerb[]>> = {
  line: ['activate', 'pin'],
  active: ['deactivate', 'pin'],
  pinned: ['deactivate', 'unpin'],
  part: ['activate', 'pin'],
  out: ['activate', 'pin'],
};

const OUTCOMES: Readonly<Record<string, string>> = {
  'already-active': 'It is already active.',
  'already-pinned': 'It is already pinned.',
  'not-active': 'It is not active.',
  'not-pinned': 'It is not pinned.',
  'unknown-object': 'The session does not know it.',
};

const longer = (tokens: number): string =>
  tokens === 0
    ? 'as long as without the change'
    : `${counted(Math.abs(tokens))} tokens ${tokens > 0 ? 'longer' : 'shorter'}`;

function written(tokens: number): string {
  if (tokens === 0) return 'the next request writes nothing more for it';
  return `the next request writes ${counted(Math.abs(tokens))} tokens ${tokens > 0 ? 'more' : 'less'} for it`;
}

/** Describes the cost of a verb. */
function priceText({
  outcome,
  verb,
  text,
  written: once,
  per_call: each,
  per_call_from_border: border,
  is_exact: isExact,
}: VerbPrice): string {
  if (outcome !== 'done') return ownMember(OUTCOMES, outcome) ?? outcome;
  const keeps = verb === 'pin' ? ` It keeps ${counted(text)} tokens that the window would drop.` : '';
  const parts = [
    written(once),
    border === null
      ? `each one from then on is ${longer(each)}`
      : `each one of this epoch is ${longer(each)}, and from the next border on ${longer(border)}`,
  ];
  return `Price: ${parts.join('; ')}${isExact ? '' : ' (about)'}.${keeps}`;
}

const recorded = (step: number) => (
  <>
    Recorded as done by a person. <a href={from('conversation', { tx: undefined, step })}>See it</a>
  </>
);

/**
 * Offers the verbs for an object of the address's session. Shows the cost of a verb before it is
 * done.
 */
export function SetVerbs({
  object,
  name,
  state,
}: {
  readonly object: string;
  readonly name: string;
  readonly state: BandState;
}) {
  const { session } = place.value.of;
  if (session === undefined || !isServed()) return null;
  return (
    <span class="verbs">
      {OFFERED[state].map((verb) => (
        <StepByStep<VerbPrice, SetsChanged>
          key={`${object} ${verb}`}
          label={`${verb.slice(0, 1).toUpperCase()}${verb.slice(1)}`}
          name={`${verb} ${oneLine(name, 80)}`}
          ask={() => askFresh<VerbPrice>('/v1/price', { session, object, verb })}
          run={(price) =>
            price.outcome === 'done'
              ? () => act<SetsChanged>(actionPath(session, 'sets'), { verb, ids: [object] })
              : undefined
          }
          renderPreview={priceText}
          renderResult={({ step, entries }) =>
            step === null
              ? `Nothing was changed: ${entries.map(({ failure = 'it is already so' }) => failure).join(', ')}.`
              : recorded(step)
          }
        />
      ))}
    </span>
  );
}

const CHANGES: Readonly<Record<SetVerb, string>> = {
  activate: 'becomes active',
  deactivate: 'is no longer active',
  pin: 'is pinned',
  unpin: 'is no longer pinned',
};

/** Undoes one step of the address's session, after a preview. */
export function UndoStep({ step }: { readonly step: number }) {
  const { session } = place.value.of;
  if (session === undefined || !isServed()) return null;
  const path = actionPath(session, 'undo');
  return (
    <StepByStep<StepUndone, StepUndone>
      key={step}
      label="undo"
      name={`undo step ${step}`}
      ask={() => act<StepUndone>(path, { step, plan: true })}
      run={() => () => act<StepUndone>(path, { step })}
      renderPreview={({ changes }) =>
        `Undoing step ${step}: ${(Object.keys(CHANGES) as SetVerb[])
          .flatMap((verb) => (changes[verb] ?? []).map((id) => `${oneLine(shortId(id), 40)} ${CHANGES[verb]}`))
          .join('; ')}.`
      }
      renderResult={(done) => recorded(done.step ?? 0)}
    />
  );
}

/** Forks the address's session at the end of a call's request, so that the call can be repeated. */
export function ForkHere({ step, call }: { readonly step: number; readonly call: number }) {
  const { session } = place.value.of;
  const strip = useSessionStrip();
  const isForeign = useForeign(strip.state === 'there' ? strip.value : undefined);
  if (session === undefined || !isServed()) return null;
  return (
    <StepByStep<number, Forked>
      key={step}
      label={`Fork before call ${counted(call)}`}
      name={`Fork before call ${counted(call)}, into a new session`}
      ask={() => Promise.resolve(step)}
      run={() => () => act<Forked>(actionPath(session, 'fork'), { at: `step:${step}` })}
      renderPreview={() =>
        `A new session begins with what came before call ${counted(call)}. This session and its files stay as they are.`
      }
      renderResult={({ id }) => (
        <>
          The new session <a href={from('strip', { session: id, tx: undefined, step: undefined })}>{oneLine(id)}</a> has
          the messages, the loaded files and the prompt of that moment
          {isForeign === true &&
            ', as the transcript has them. The other agent does not know of it, and no file is put back'}
          . Next, set this command as an MCP server of your agent, which then continues in the new session:{' '}
          <code class="command">{command('mcp', '--session', id)}</code>{' '}
          <CopyButton text={() => command('mcp', '--session', id)} label="Copy the command" />
        </>
      )}
    />
  );
}
