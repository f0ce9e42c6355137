import { HistoryError } from '../history/history-error.js';
import { errorText } from '../node/errors.js';
import { systemCode } from '../process/system-code.js';
import { ReplayError } from '../replay/replay-error.js';
import { escapedJson, escapedText } from './escape-text.js';
import { USAGE_EXIT_CODE, UsageError } from './usage-error.js';

function isUsage(error: unknown): boolean {
  if (error instanceof HistoryError) return error.isUsage;
  return error instanceof UsageError || (error instanceof ReplayError && error.code === 'bad-config');
}

/**
 * Runs a command's action; a failure becomes one line on stderr (with `--json`, one object on stdout) and exit code 1, or 64 where the flags, the settings or the
 * question itself are at fault.
 * What a message quotes, of a recording or of the database, is escaped as any other output.
 */
export async function reportFailure(flags: { readonly json?: boolean }, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const message = errorText(error);
    const code = systemCode(error) ?? 'error';
    if (flags.json) console.log(escapedJson({ error: { code, message } }));
    else console.error(`palimpsest: ${escapedText(message)}`);
    process.exitCode = isUsage(error) ? USAGE_EXIT_CODE : 1;
  }
}
