import { basename } from 'node:path';
import { escapedJson, escapedLine, escapedText } from '../../cli/escape-text.js';
import { codeOf } from '../../values/thrown.js';
import { summariseRecording } from '../replay/dry-run.js';
import type { ReplayFlags } from './replay-flags.js';

const TELL_EVERY_MS = 2_000;
/** Losses that are told one by one; all of them stand in the JSON, up to its own bound. */
const SHOWN_LOSSES = 20;

/** A recording that could not be read or replayed. */
export function tellFailure(path: string, error: Error, flags: ReplayFlags): void {
  process.exitCode = 1;
  const code = codeOf(error) ?? 'error';
  if (flags.json) console.log(escapedJson({ recording: { name: basename(path) }, error: { code, message: error.message } }));
  else console.error(`palimpsest: ${escapedText(error.message)}`);
}

/** A recording of which something, or everything, could not be read. */
export function tellMissing(
  name: string,
  sessions: number,
  { complete, losses }: { readonly complete: boolean; readonly losses: { readonly total: number } },
): void {
  if (!complete || (sessions === 0 && losses.total > 0)) process.exitCode = 1;
  if (!complete) console.error(escapedLine(`palimpsest: ${name} is cut off: what came after is not in its report`));
  else if (sessions === 0)
    console.error(
      escapedLine(`palimpsest: ${name} holds no session${losses.total > 0 ? ' that could be read; its report tells why' : ''}`),
    );
}

const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

/** `--dry-run`: what the recordings hold, one line each and their losses below; no database. */
export async function dryRun(paths: readonly string[], flags: ReplayFlags, progress: (line: string) => void): Promise<void> {
  for (const path of paths) {
    let told = Date.now();
    const onProgress = (done: number, total: number): void => {
      if (Date.now() - told < TELL_EVERY_MS) return;
      told = Date.now();
      progress(`${basename(path)}: ${Math.floor((100 * done) / Math.max(1, total))} % read`);
    };
    try {
      const summary = await summariseRecording(path, { onProgress });
      tellMissing(summary.recording.name, summary.sessions, summary);
      if (flags.json) {
        console.log(escapedJson(summary));
        continue;
      }
      const { recording, sessions, messages, calls, results, losses } = summary;
      const said = Object.entries(messages).map(([role, count]) => `${count} ${role}`);
      const held = [
        counted(sessions, 'session'),
        `messages: ${said.join(', ') || 'none'}`,
        counted(calls, 'call'),
        counted(results, 'result'),
      ];
      console.log(escapedLine(`${recording.name}: ${recording.formats.join(', ')}, ${held.join(', ')}`));
      for (const { reason, place, detail } of losses.each.slice(0, SHOWN_LOSSES))
        console.log(escapedLine(`  ${reason}, ${place}: ${detail}`));
      if (losses.total > SHOWN_LOSSES) console.log(`  and ${losses.total - SHOWN_LOSSES} more; --json has them`);
    } catch (error) {
      tellFailure(path, error instanceof Error ? error : new Error(String(error)), flags);
    }
  }
}
