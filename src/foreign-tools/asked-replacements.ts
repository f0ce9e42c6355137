import type { Replacement } from './text-edits.js';
import { type ToolArguments, textArgument } from './tool-arguments.js';

/** Returns the replacement that some arguments describe; undefined without a text to replace. */
export function askedReplacement(args: ToolArguments): Replacement | undefined {
  const from = textArgument(args, 'oldText');
  const all = args.replace_all === true || args.replaceAll === true || Number(args.expected_replacements ?? 1) > 1;
  return from === undefined ? undefined : { from, to: textArgument(args, 'newText') ?? '', all };
}

/**
 * Returns the text replacements of a call, from its list `edits` or from its own arguments.
 * Undefined if any replacement has unknown arguments.
 */
export function askedReplacements(args: ToolArguments): readonly Replacement[] | undefined {
  const given: readonly unknown[] = Array.isArray(args.edits) && args.edits.length > 0 ? args.edits : [args];
  const each = given.map((one) =>
    typeof one === 'object' && one !== null ? askedReplacement(one as ToolArguments) : undefined,
  );
  return each.includes(undefined) ? undefined : (each as readonly Replacement[]);
}
