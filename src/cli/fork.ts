import { Command, Option } from 'commander';
import { dataFlag, jsonFlag } from './flags.js';
import type { ReviewFlags } from './review/answer.js';

interface ForkFlags extends ReviewFlags {
  readonly id?: string;
}

async function forkAction(reference: string, flags: ForkFlags): Promise<void> {
  const [
    { answerReview },
    { requireSession },
    { askedMoment, parseReference },
    { forkAt },
    { holderIn },
    { newSessionId },
    { sessionId },
    { tell },
  ] = await Promise.all([
    import('./review/answer.js'),
    import('../history/rebuild/find-session.js'),
    import('../history/rebuild/moment.js'),
    import('../client/session/fork-at.js'),
    import('../client/session/session-lease.js'),
    import('../client/session/new-session-id.js'),
    import('../objects/ids.js'),
    import('./output.js'),
  ]);
  await answerReview(flags, async ({ timeline, clientDir }) => {
    const { name, moment } = parseReference(reference);
    const when = askedMoment(flags, moment);
    const parent = await requireSession(timeline.present, name);
    const id = flags.id === undefined ? newSessionId(new Date()) : sessionId(flags.id);
    const isPlaced = Object.values(when).some((clock) => clock !== undefined);
    const { store } = timeline;
    const made = await forkAt(
      { store, clock: Date.now, holder: (session) => holderIn(clientDir, session) },
      parent,
      isPlaced ? { id, at: when } : { id },
    );
    const { seq } = made.parent;
    const turn = (await timeline.steps(parent)).find((step) => step.seq === seq)?.turn ?? 0;
    if (flags.json !== true) tell(`forked from ${parent} after step ${seq}, turn ${turn}`);
    return {
      lines: () => [id],
      json: () => ({ id, parent: { session: parent, at: seq, turn } }),
    };
  });
}

/**
 * `palimpsest fork`: starts a new session from a moment of another session, which does not change.
 */
export function forkCommand(): Command {
  return new Command('fork')
    .description('start a new session from a moment of another one, with its chat, sets and prompt; prints the new id')
    .argument(
      '<session>',
      'session id or prefix, optionally with @MOMENT, such as @turn:7 or @step:41 (default: its last step)',
    )
    .addOption(new Option('--id <id>', 'id of the new session (default: generated)'))
    .addOption(new Option('--at <moment>', 'the moment, if the session has no @MOMENT'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(forkAction);
}
