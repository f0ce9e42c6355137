import type { EpochInput } from '../assembly/epoch/epoch-state.js';
import type { ShownByTail } from '../assembly/epoch/plan-note.js';
import { showsText } from '../assembly/shown-text.js';
import { type Replacement, replaced } from '../foreign-tools/text-edits.js';
import { type ToolArguments, textArgument } from '../foreign-tools/tool-arguments.js';
import { foreignTool, type ToolKind } from '../foreign-tools/tool-table.js';
import type { KeptList } from '../objects/assembly-proof.js';
import type { ObjectId } from '../objects/ids.js';
import { GrowingTail, type PlacedList, type TailCall } from './growing-tail.js';
import { type ReadCall, readText } from './tool-output/read-output.js';

function replacementOf(args: ToolArguments): Replacement | undefined {
  const from = textArgument(args, 'oldText');
  return from === undefined
    ? undefined
    : { from, to: textArgument(args, 'newText') ?? '', all: args.replace_all === true || args.replaceAll === true };
}

/**
 * For each kind of tool, derives from a call's arguments the text that the file has after the call.
 * Undefined if the arguments do not determine the text.
 */
const MADE: Readonly<
  Partial<Record<ToolKind, (args: ToolArguments, before: string | undefined) => string | undefined>>
> = {
  write: (args) => textArgument(args, 'content'),
  edit: (args, before) => {
    const given: readonly unknown[] = Array.isArray(args.edits) && args.edits.length > 0 ? args.edits : [args];
    const each = given.flatMap((one) =>
      typeof one === 'object' && one !== null ? (replacementOf(one as ToolArguments) ?? []) : [],
    );
    return before === undefined || each.length < given.length ? undefined : replaced(before, each);
  },
};

/** Returns the text of a file after some calls, as far as their results and arguments show it. */
function textAfter(calls: readonly TailCall[], text: string, before: string | undefined): string | undefined {
  let shown = before;
  for (const { tool, args, content, status } of calls) {
    if (status === 'fail') continue;
    const made = MADE[foreignTool(tool).kind];
    if (made !== undefined) shown = made(args, shown) ?? shown;
    else if (showsText(content, text)) shown = text;
  }
  return shown;
}

/** Returns the whole text of a file, if a read shows all of it. */
function wholeRead(call: ReadCall): string | undefined {
  const { text, whole } = readText(call) ?? {};
  return whole === true ? text : undefined;
}

/** The messages of an epoch that the harness has sent again unchanged. */
export interface KeptMessages {
  readonly list: KeptList;
  /** Returns which objects of the session these messages show. */
  readonly shown: (input: EpochInput) => ShownByTail;
}

/**
 * Returns the messages that stay in an epoch: those of `list` and all later ones. Undefined in
 * three cases:
 *
 * - `given` no longer contains the messages of `list`.
 * - The messages that stay have a result whose call is before them.
 * - The model has written more than one message since the last request. A model call was then made
 *   with the harness's own list, and the model's reasoning of that call is valid only with that
 *   list.
 */
export function keptMessages(
  given: PlacedList,
  list: KeptList,
  tail: GrowingTail = new GrowingTail(),
): KeptMessages | undefined {
  const { from, count } = list;
  if (!tail.has(given, list)) return undefined;
  if (given.messages.slice(from + count).filter(({ role }) => role === 'assistant').length > 1) return undefined;
  const { calls, results, reads, hasLateResult, list: whole } = tail.from(given, from);
  // The call of a late result is before the kept messages, so the result would stay without it.
  if (hasLateResult) return undefined;
  const shown = (input: EpochInput): ShownByTail => {
    let filesOf: ReadonlyMap<ObjectId, readonly ObjectId[]> | undefined;
    const files = (call: ObjectId): readonly ObjectId[] | undefined => {
      filesOf ??= new Map(
        input.pool.flatMap((one) => (one.type === 'toolcall' ? [[one.id, one.fileRefs] as const] : [])),
      );
      return filesOf.get(call);
    };
    return {
      count: whole.count,
      results,
      reads: reads.map(({ args, content: output, index, ref }) => ({
        call: ref,
        output,
        whole: () => wholeRead({ args, output, truncated: false }),
        isNew: index >= from + count,
      })),
      shows: ({ id }, text, before) => {
        const about = calls.filter(
          ({ ref, index }) => (before === undefined || index >= from + count) && files(ref)?.includes(id) === true,
        );
        return textAfter(about, text, before) === text;
      },
    };
  };
  return { list: whole, shown };
}
