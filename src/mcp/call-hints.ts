import { defined } from '../values/defined.js';

/** What a client's `_meta` says about where a call belongs. */
export interface CallHints {
  /** The client's own name of the conversation. */
  readonly thread?: string;
  /** The client's id of the call (decision B2). */
  readonly callId?: string;
  /** The client's id of the turn (decision B7). */
  readonly turnRef?: string;
}

type Meta = Readonly<Record<string, unknown>>;

function textAt(meta: Meta, ...keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = meta[key];
    if (typeof value === 'string' && value !== '' && value.length <= 180 && value.isWellFormed()) return value;
  }
  return undefined;
}

function mapAt(meta: Meta, key: string): Meta {
  const value = meta[key];
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta;
  if (typeof value !== 'string') return {};
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Meta) : {};
  } catch {
    return {};
  }
}

/** Reads the hints that clients are known to send; Codex sends all three, most others none. */
export function callHints(meta: Meta): CallHints {
  const codexTurn = mapAt(meta, 'x-codex-turn-metadata');
  const thread = textAt(meta, 'threadId', 'palimpsest/session') ?? textAt(codexTurn, 'thread_id');
  const callId = textAt(meta, 'callId', 'itemId', 'claudecode/toolUseId');
  const turnRef = textAt(codexTurn, 'turn_id') ?? textAt(meta, 'turnId');
  return {
    ...defined({ thread, callId, turnRef }),
  };
}
