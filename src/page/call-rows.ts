import { isTurn, makerOf } from './strip-layout.js';
import type { ConversationRow, Strip } from './wire.js';

/** Whether a call of the model made a row: its answer, or one of its tool calls. */
const isOfCall = (row: ConversationRow): boolean =>
  row.kind === 'call' || (row.kind === 'message' && row.role === 'assistant');

/** Returns the rows of the call of the model that made a row; the row alone if none did. */
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
