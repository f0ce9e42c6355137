import type { ExportTarget, ImportSource, Written } from '../../cli/contract.js';
import { withImportClient } from '../../cli/import-target.js';
import { exportSession } from './export-session.js';
import { ImportClock } from './import-clock.js';
import { importDirectory } from './import-session.js';

/** Writes a session into a directory, or updates the directory. */
export async function exportDirectory({ timeline, session, when, folder }: ExportTarget): Promise<Written> {
  const { projection, appended, written, unchanged, removed } = await exportSession(timeline, folder, {
    session,
    when,
  });
  const { entries, digest, turn, seq } = projection;
  return {
    lines: [
      `session ${session}, turn ${turn}, step ${seq}: ${entries.length} entries in ${folder}`,
      `${appended} lines added to messages.jsonl; ${written.length} files written, ${unchanged} unchanged`,
      ...removed.map((path) => `removed ${path}: it is no longer pinned`),
    ],
    json: {
      format: 'cortexfs',
      session,
      folder,
      turn,
      step: seq,
      entries: entries.length,
      digest,
      appended,
      written,
      unchanged,
      removed,
    },
  };
}

/** The flags of an import in this format. */
interface DirectoryFlags {
  readonly session?: string;
  readonly plan?: boolean;
  readonly root?: readonly string[];
}

/** Imports a session directory. */
export async function importSessionDirectory({ file, flags }: ImportSource): Promise<Written> {
  const { plan: planOnly = false, session, root } = flags as DirectoryFlags;
  const clock = new ImportClock();
  return withImportClient(flags, { roots: root, clock: clock.now }, async (client) => {
    const { leftOut, ...done } = await importDirectory(client, file, { clock, session, planOnly });
    const { outcome, steps, messages, calls, records } = done;
    const would = planOnly ? 'would be ' : '';
    const words = { created: `${would}created from`, extended: `${would}extended from`, unchanged: 'has all of' };
    return {
      lines: [
        `session ${done.session} ${words[outcome]} ${file}`,
        ...(outcome === 'unchanged'
          ? []
          : [`${steps} steps: ${messages} messages, ${calls} calls; ${records} records`]),
        ...leftOut.map((path) => `left out ${path}: not a text file`),
      ],
      json: { format: 'cortexfs', source: file, plan: planOnly, ...done, left_out: leftOut },
    };
  });
}
