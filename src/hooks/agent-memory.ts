import { SeenFiles } from '../client/session/seen-files.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import { foreignTool, type ToolKind } from '../foreign-tools/tool-table.js';
import { readingOfText } from '../harness/observe-call.js';
import type { ObjectId } from '../objects/ids.js';
import type { HookEvent, HookedCall } from './agent-hooks.js';
import type { NamedFile } from './named-files.js';

/** The tool and id of the call in which an agent saw a file. */
export type SeenIn = Pick<HookedCall, 'tool' | 'id'>;

/** A file that changed on the disk since the agent saw it. */
export interface ChangedFile extends Pick<NamedFile, 'name' | 'file'> {
  readonly before: string;
  readonly after: string;
  /** The call that showed or wrote the file, if it is known. */
  readonly seenIn: SeenIn | undefined;
}

/** Tools after which the agent knows a file's text. */
const SHOWS: ReadonlySet<ToolKind> = new Set(['read', 'write', 'edit', 'patch']);

/** Minimum length of an output that shows a file. A file may contain a shorter one by chance. */
const LEAST_SHOWN = 40;

/** Returns whether a command showed a file: its output has the whole file or is a part of it. */
function showed(reading: SourceReading, shown: string | undefined): boolean {
  const output = shown?.trim() ?? '';
  if (reading.kind !== 'text' || output.length < LEAST_SHOWN) return false;
  const file = reading.content.trim();
  return file.includes(output) || (file.length >= LEAST_SHOWN && output.includes(file));
}

/**
 * Remembers the files that one agent saw, according to its hooks. A sub-agent has its own memory,
 * because it does not see its parent's calls.
 */
export class AgentMemory {
  readonly #seen = new SeenFiles();
  readonly #calls = new Map<ObjectId, SeenIn>();

  /** Remembers the files of a finished call. */
  saw({ tool, id }: HookedCall, files: readonly NamedFile[], shown: HookEvent['shown']): void {
    const { kind } = foreignTool(tool);
    for (const { file, reading } of files)
      if (SHOWS.has(kind) || (kind === 'shell' && showed(reading, shown))) this.remember(file, reading, { tool, id });
  }

  /** Remembers a file as the agent saw it in a call. */
  remember(file: NamedFile['file'], reading: SourceReading, seenIn?: SeenIn): void {
    this.#seen.read({ source: file.source, reading });
    if (seenIn !== undefined) this.#calls.set(file.id, seenIn);
  }

  /** Returns whether hooks reported that the agent saw a file. */
  knows({ file }: NamedFile): boolean {
    return this.#seen.has(file.id);
  }

  /** Returns the files that differ from what the agent saw. Each change is returned once. */
  changed(files: readonly NamedFile[]): readonly ChangedFile[] {
    return files.flatMap(({ name, file, reading }) => {
      const changed = this.#seen.changed(file.source, reading);
      return changed === undefined ? [] : [{ name, file, ...changed, seenIn: this.#calls.get(file.id) }];
    });
  }

  /** Forgets that changes were returned, because the agent did not receive them. */
  notDelivered(changed: readonly ChangedFile[]): void {
    for (const { file, before } of changed) this.remember(file, readingOfText(before, 0));
  }

  /** Forgets files that a call will change: not every agent reports the end of each call. */
  changing(files: readonly NamedFile[]): void {
    for (const { file } of files) this.#seen.changing(file.id);
  }
}
