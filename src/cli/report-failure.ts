import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { escapedJson, escapedText } from './escape-text.js';
import { USAGE_EXIT_CODE } from './usage-error.js';

/**
 * Runs a command's action; a failure becomes one line on stderr (with `--json`, one object on stdout) and exit code 1, or 64 where the flags, the settings or the
 * question itself are at fault.
 * What a message quotes, of a recording or of the database, is escaped as any other output.
 */
export async function reportFailure(flags: { readonly json?: boolean }, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const message = messageOf(error);
    const code = codeOf(error) ?? 'error';
    if (flags.json) console.log(escapedJson({ error: { code, message } }));
    else console.error(`palimpsest: ${escapedText(message)}`);
    process.exitCode = error instanceof CodedError && error.isUsage ? USAGE_EXIT_CODE : 1;
  }
}
