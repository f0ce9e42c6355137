import { execFile } from 'node:child_process';
import { Command, Option } from 'commander';
import { numberBetween, wholeBetween } from '../../cli/flags.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import { withData } from '../../cli/review/moment-flags.js';
import type { SessionLock } from '../../journal/session-lock.js';
import type { ContextRecord } from '../../objects/context-record.js';
import type { SessionId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { Entry } from '../projection/entry.js';
import type { CheckpointWriter } from './checkpoint-writer.js';
import type { CompactedConversation, CompactionWish } from './compact-conversation.js';
import type { PromptMessage } from './visible-prompt.js';

interface CompactFlags extends ReviewFlags {
  readonly budget: number;
  readonly reserve?: number;
  readonly reason: CompactionWish['reason'];
  readonly target?: number;
  readonly writer?: string;
  readonly preview?: boolean;
}

const PROGRAM_MS = 120_000;
const MOST_BYTES = 4_194_304;
const MOST_TOKENS = 100_000_000;

async function run(command: string, input: string, signal: AbortSignal | undefined): Promise<string> {
  const shell = (await import('../../process/program-files.js')).inShell(command);
  return new Promise((resolve, reject) => {
    const limits = { timeout: PROGRAM_MS, maxBuffer: MOST_BYTES, encoding: 'utf8', ...defined({ signal }) } as const;
    const child = execFile(shell.command, shell.args, { ...limits, ...shell.options }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    // The program may exit without reading its input. Its exit code then reports a failure.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/**
 * Runs a command that reads the text to summarise as JSON on stdin and writes a checkpoint as JSON
 * to stdout.
 */
function programWriter(
  command: string,
  messagesOf: (entries: readonly Entry[]) => readonly PromptMessage[],
): CheckpointWriter {
  return {
    name: 'program',
    write: ({ entries, identifiers, limit, counter, attempt, complaint, signal }) => {
      const asked = {
        messages: messagesOf(entries),
        critical_identifiers: identifiers,
        max_tokens: limit,
        counter: counter.name,
      };
      return run(command, JSON.stringify({ ...asked, attempt, ...defined({ complaint }) }), signal);
    },
  };
}

/**
 * Locks a session. Only the owner of the lock may write records of the session, such as a
 * compaction.
 * @throws {SessionError} `lease-held` – another process has it open
 */
async function heldSession(clientDir: string, session: SessionId): Promise<SessionLock> {
  const [{ holderIn, lockSession }, { SessionError }] = await Promise.all([
    import('../../client/session/session-lease.js'),
    import('../../session/errors.js'),
  ]);
  try {
    return await lockSession({ dataDir: clientDir, what: 'palimpsest compact' }, session, false);
  } catch (cause) {
    if (!(cause instanceof SessionError)) throw cause;
    const holder = (await holderIn(clientDir, session)) ?? 'another process';
    throw new SessionError(
      'lease-held',
      `session ${session} is open in ${holder}. End it and try again, or ask palimpsest serve there ` +
        `(POST /v1/sessions/${session}/tyrum/compact). --preview shows the result without recording it`,
      { cause },
    );
  }
}

async function compactAction(reference: string, flags: CompactFlags): Promise<void> {
  const [{ answerReview }, { requireSession }, { compactedAnswer }, { compactConversation, compactionRecords }, tyrum] =
    await Promise.all([
      import('../../cli/review/answer.js'),
      import('../../history/rebuild/find-session.js'),
      import('./http-handlers.js'),
      import('./compact-conversation.js'),
      Promise.all([
        import('./conversation.js'),
        import('./visible-prompt.js'),
        import('../projection/session-moment.js'),
        import('../../history/rebuild/timeline.js'),
        import('../../objects/ids.js'),
      ]),
    ]);
  const [{ conversationAt }, { messagesOf }, { SessionMoment }, { Timeline }, { sessionObjectId }] = tyrum;
  const { budget, reserve: reserved = 0, reason, target, writer: command, preview } = flags;
  const writer =
    command === undefined
      ? undefined
      : programWriter(command, (entries) =>
          messagesOf(
            entries.map((entry) => ({
              kind: 'entry',
              entry,
              form: 'full',
              text: entry.text ?? '',
              tokens: entry.tokens,
            })),
          ),
        );
  await answerReview(flags, async ({ timeline, clientDir }) => {
    const session = await requireSession(timeline.present, reference);
    const lock = preview === true ? undefined : await heldSession(clientDir, session);
    let compacted: CompactedConversation;
    let records: readonly ContextRecord[];
    try {
      // The lock's previous owner may have written a last step after the timeline was opened.
      const now = await Timeline.open(timeline.store, timeline.paths);
      const lease = (await now.present.heads([sessionObjectId(session)])).get(sessionObjectId(session))?.document;
      const conversation = await conversationAt(await SessionMoment.read(now, session));
      const wish: CompactionWish = { tokens: budget, reserved, reason, ...defined({ target }) };
      const at = Date.now();
      compacted = await compactConversation(conversation, wish, { writer, rewrite: true, at });
      records = preview === true ? [] : compactionRecords(conversation.projection, compacted, { wish, at });
      if (records.length > 0) await timeline.store.putRecords(records, defined({ lease }));
    } finally {
      lock?.release();
    }
    const answer = compactedAnswer(compacted, { recorded: records.length > 0, reserved });
    const { tokens, before_tokens: before, limit, state, checkpoint_by: by, refused } = answer;
    return {
      lines: () => [
        answer.compacted
          ? `compacted from ${before} to ${tokens} tokens; the limit is ${limit}`
          : `${tokens} of ${limit} tokens: nothing to compact`,
        ...(state.checkpoint === null
          ? []
          : [`checkpoint by ${by ?? 'digest'}, through ${state.compacted_through_message_id ?? 'none'}:`]),
        ...(state.checkpoint === null ? [] : JSON.stringify(state.checkpoint, null, 2).split('\n')),
        ...refused.map((why) => `not taken: ${why}`),
        ...state.pending_approvals.map(
          ({ approval_id, tool_name }) => `pending approval: ${approval_id}, ${tool_name}`,
        ),
        ...state.pending_tool_state.map(
          ({ tool_call_id, tool_name }) => `pending result: ${tool_call_id}, ${tool_name}`,
        ),
      ],
      json: () => answer,
    };
  });
}

/**
 * `palimpsest compact`: compacts a conversation to fit a token limit, as Tyrum does. Stored steps
 * stay as they are, and the compaction is recorded.
 */
export function compactCommand(): Command {
  return withData(new Command('compact'))
    .description('replace old turns of a session with a summary, as Tyrum does; pending calls and approvals are kept')
    .argument('<session>', 'session id or prefix')
    .addOption(
      new Option('--budget <tokens>', 'maximum tokens of a request')
        .argParser(wholeBetween(1, MOST_TOKENS))
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--reserve <tokens>', 'tokens reserved for tool schemas and the answer (default: 0)').argParser(
        wholeBetween(0, MOST_TOKENS),
      ),
    )
    .addOption(
      new Option(
        '--reason <reason>',
        'token_pressure compacts only above the budget; the other reasons compact at once',
      )
        .choices(['token_pressure', 'manual', 'overflow'])
        .default('manual'),
    )
    .addOption(
      new Option('--target <share>', 'share of the budget to compact down to (default: 0.5)').argParser(
        numberBetween(0.01, 1),
      ),
    )
    .addOption(
      new Option(
        '--writer <command>',
        'shell command that reads the messages as JSON and writes the checkpoint as JSON; runs at most twice, ' +
          '120 s each',
      ),
    )
    .addOption(
      new Option('--preview', 'show the result without recording it; works while another process has the session open'),
    )
    .action(compactAction);
}
