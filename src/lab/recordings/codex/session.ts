import { isAbsolute, join } from 'node:path/posix';
import { idAt, momentOf, objectAt, textAt } from '../entries/fields.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';

/** The longest time between two records of a history that is written in one go, milliseconds. */
const COPY_GAP_MS = 100;

/** The session that a file of Codex opens with. */
export function codexSession(meta: JsonObject | undefined, place: string, fallbackId: string): EntryOf<'session'> {
  const source = objectAt(meta, 'source');
  const spawn = objectAt(objectAt(source, 'subagent'), 'thread_spawn');
  const origin = idAt(meta, 'forked_from_id') ?? idAt(spawn, 'parent_thread_id');
  const subagent = source !== undefined && 'subagent' in source;
  return {
    kind: 'session',
    format: 'codex',
    native_id: idAt(meta, 'id') ?? fallbackId,
    place,
    agent: 'Codex',
    agent_version: textAt(meta, 'cli_version'),
    cwd: textAt(meta, 'cwd'),
    started_at: momentOf(meta?.timestamp),
    system_prompt: textAt(objectAt(meta, 'base_instructions'), 'text') ?? textAt(meta, 'instructions'),
    parent: origin === undefined ? undefined : { native_id: origin, relation: subagent ? 'subagent' : 'fork' },
  };
}

/**
 * Tells the history that a forked file opens with from what was done in it. Behind the meta of its parent the file holds the parent's records, written in one
 * go at the moment of the fork (later versions keep their old moments): the copy ends with the first pause.
 */
export class CopiedHistory {
  #began: number | undefined;
  #last: number | undefined;
  #copying = false;

  /** The parent's meta was read at this moment. */
  begin(at: number | undefined): void {
    this.#copying = at !== undefined;
    this.#began = at;
    this.#last = at;
  }

  /** Whether a record of this moment is of the copy. */
  holds(at: number | undefined): boolean {
    if (!this.#copying || at === undefined || this.#began === undefined || this.#last === undefined) return this.#copying;
    if (at >= this.#began && at - this.#last > COPY_GAP_MS) this.#copying = false;
    this.#last = Math.max(at, this.#began);
    return this.#copying;
  }
}

/** The working directory of a call: what it asks for, else the turn's. Windows paths are kept as they are. */
export function callDirectory(args: JsonObject, turn: string | undefined): string | undefined {
  const asked = textAt(args, 'workdir') ?? textAt(args, 'working_directory');
  if (asked === undefined || asked === '') return turn;
  if (isAbsolute(asked) || /^[A-Za-z]:[\\/]/.test(asked) || turn === undefined) return asked;
  return join(turn, asked);
}

const HARNESS_TEXT =
  /^\s*(?:<(?:environment_context|permissions instructions|user_instructions|INSTRUCTIONS|turn_aborted|subagent_notification|skill|skills_instructions|collaboration_mode|user_shell_command|model_switch|personality_spec|apps_instructions|plugins_instructions|realtime_conversation|hook_prompt)[\s>]|# AGENTS\.md instructions)/;

/** Who wrote a message. */
export function originOf(role: EntryOf<'message'>['role'], text: string): EntryOf<'message'>['origin'] {
  if (role === 'assistant') return 'model';
  return role === 'user' && !HARNESS_TEXT.test(text) ? 'person' : 'harness';
}
