import type { Conversation, ConversationRow, Log } from './wire.js';

type LoggedTurn = NonNullable<Log['turns']>[number];

/** Returns the rows of a logged turn, in order. */
function rowsOf(turn: LoggedTurn): readonly ConversationRow[] {
  const at = (step: number) => ({ step, turn: turn.turn, at: turn.from });
  const rows: readonly ConversationRow[] = [
    ...turn.messages.map(
      ({ step, role, text, usage }): ConversationRow => ({
        kind: 'message',
        ...at(step),
        role: role === 'user' || role === 'assistant' || role === 'system' ? role : 'harness',
        text,
        is_cut: false,
        call: null,
        usage: usage ?? null,
        cost: null,
      }),
    ),
    ...turn.calls.map(
      ({ step, id, name, tool, status, args, chars, notes }): ConversationRow => ({
        kind: 'call',
        ...at(step),
        id,
        number: 0,
        name,
        tool,
        failed: status === 'fail',
        args,
        result: '',
        result_chars: chars,
        is_cut: true,
        files: [],
        diff: null,
        notes,
        call: null,
        stale: false,
      }),
    ),
    ...turn.epochs.map(
      ({ step, number, reason, price }): ConversationRow => ({
        kind: 'epoch',
        ...at(step),
        number,
        reason,
        price,
        text: `Epoch ${number} began (${reason})`,
      }),
    ),
    ...turn.events.map(
      ({ step, kind, detail, missing }): ConversationRow => ({
        kind: 'event',
        ...at(step),
        event: kind,
        text: `The harness: ${kind}`,
        summary: detail,
        dropped: missing,
      }),
    ),
    ...turn.person.map(
      ({ step, undoes }): ConversationRow => ({
        kind: 'person',
        ...at(step),
        text: undoes === null ? 'changed what is in the context' : `took back step ${undoes}`,
      }),
    ),
  ];
  return [
    { kind: 'turn', ...at(turn.first_step), opened_by: turn.opened_by },
    ...rows.toSorted((a, b) => a.step - b.step),
  ];
}

/** Makes the conversation of a session from its log, for a file that has no other. */
export function loggedConversation(session: string, { turns, basis }: Log): Conversation {
  let calls = 0;
  const rows = (turns ?? [])
    .toReversed()
    .flatMap(rowsOf)
    .map((row) => (row.kind === 'call' ? { ...row, number: ++calls } : row));
  return {
    session,
    basis,
    title: '',
    last_step: rows.at(-1)?.step ?? 0,
    tool_calls: calls,
    model_calls: 0,
    rows,
    before: null,
    after: null,
  };
}
