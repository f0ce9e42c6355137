import { bump, ImportCounter } from '../recordings/import-counts.js';
import type { CallEffects } from './call-effects.js';

/** What was counted while a recording was replayed: of the recording, and of what became of it. */
export class ReplayTally {
  readonly entries = new ImportCounter();
  failed = 0;
  unanswered = 0;
  /** Files that calls read or mentioned, as they were reported to the client. */
  readonly observations = { readings: 0, mentions: 0, left: 0 };
  /** Calls by what the tool is for; a kind that recordings seldom have is there only if it came. */
  readonly #kinds = { read: 0, write: 0, edit: 0, patch: 0, list: 0, glob: 0, grep: 0, shell: 0, other: 0 };
  /** Reads by any means: whole files, parts of files; those of both by a shell. */
  readonly #reads = { whole: 0, part: 0, by_shell: 0 };
  readonly #changes = { followed: 0, unknown: 0 };

  /** What a call did, as far as it could be followed. */
  did({ kind, seen, readings, mentions, unknown, left }: CallEffects, failed: boolean): void {
    bump(this.#kinds, kind);
    if (failed) this.failed += 1;
    for (const { how } of seen) {
      if (how !== 'whole' && how !== 'part') continue;
      this.#reads[how] += 1;
      if (kind === 'shell') this.#reads.by_shell += 1;
    }
    this.#changes.unknown += unknown;
    this.#changes.followed += seen.filter(({ how }) => how === 'written').length - unknown;
    this.observations.readings += readings.length;
    this.observations.mentions += mentions.length;
    this.observations.left += left;
  }

  /** What was recorded, as the report of the replay has it. */
  get recorded() {
    const { total, counted } = this.entries;
    const { messages, calls, results, compactions, events, tools, usage, shell_reads, attached_files, copied } = total;
    return {
      messages,
      items: counted.reduce((sum, { items }) => sum + items, 0),
      read_files: counted.reduce((sum, { reads }) => sum + reads, 0),
      main: counted[0] ?? { items: 0, calls: 0, reads: 0 },
      shell_reads,
      attached_files,
      copied,
      calls,
      results,
      failed: this.failed,
      unanswered: this.unanswered,
      compactions,
      events,
      tools,
      kinds: this.#kinds,
      reads: this.#reads,
      changes: this.#changes,
      usage,
    };
  }
}
