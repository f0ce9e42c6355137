import { isTurn, makerOf } from './strip-layout.js';
import type { ConversationRow, Strip } from './wire.js';

/** Whether a row comes from a model call: the call's answer, or one of its tool calls. */
const isOfCall = (row: ConversationRow): boolean =>
  row.kind === 'call' || (row.kind === 'message' && row.role === 'assistant');

/** Returns the rows of the model call that a row comes from; only the row if it comes from none. */
export function ofOneCall(
  rows: readonly ConversationRow[],
  chosen: ConversationRow | undefined,
  calls: Strip['calls'],
): readonly ConversationRow[] {
  if (chosen === undefined || chosen.kind === 'turn') return [];
  if (!isOfCall(chosen)) return [chosen];
  const number = makerOf({ calls }, chosen.step);
  const call = calls[number - 1];
  if (call === undefined || isTurn(call)) return [chosen];
  const own = rows.filter((row) => isOfCall(row) && makerOf({ calls }, row.step) === number);
  return rows.slice(rows.indexOf(own[0] ?? chosen), rows.indexOf(own.at(-1) ?? chosen) + 1);
}
