import { SeenFiles } from '../client/session/seen-files.js';
import { foreignTool, type ToolKind } from '../foreign-tools/tool-table.js';
import type { ObjectId } from '../objects/ids.js';
import type { HookedCall } from './agent-hooks.js';
import type { NamedFile } from './named-files.js';

/** A file that changed on the disk since the agent saw it. */
export interface ChangedFile {
  /** The name in the call that would change it. */
  readonly name: string;
  readonly before: string;
  readonly after: string;
  /** The call that showed or wrote it, if hooks reported that. */
  readonly seenIn: Pick<HookedCall, 'tool' | 'id'> | undefined;
}

/** Tools after which the agent knows a file's text. */
const SHOWS: ReadonlySet<ToolKind> = new Set(['read', 'write', 'edit', 'patch']);

/**
 * Remembers the files that one agent saw, by its hooks. A sub-agent has its own memory, because it
 * does not see the calls of its parent.
 */
export class AgentMemory {
  readonly #seen = new SeenFiles();
  readonly #calls = new Map<ObjectId, Pick<HookedCall, 'tool' | 'id'>>();

  /** Remembers the files of a finished call. */
  saw({ tool, id }: HookedCall, files: readonly NamedFile[]): void {
    if (!SHOWS.has(foreignTool(tool).kind)) return;
    for (const { file, reading } of files) {
      this.#seen.read({ source: file.source, reading });
      this.#calls.set(file.id, { tool, id });
    }
  }

  /**
   * Returns the files that differ from what the agent saw, each change once. `session` has the
   * files that the session's transcript showed, for a process that began later than the agent.
   */
  changed(files: readonly NamedFile[], session: SeenFiles): readonly ChangedFile[] {
    return files.flatMap(({ name, file, reading }) => {
      const isOwn = this.#seen.has(file.id);
      const changed = (isOwn ? this.#seen : session).changed(file.source, reading);
      if (changed === undefined) return [];
      return [{ name, ...changed, seenIn: isOwn ? this.#calls.get(file.id) : undefined }];
    });
  }
}
