import type { ToolKind } from '../../foreign-tools/tool-table.js';
import type { Json } from '../../objects/canonical-json.js';
import type { EntryOf } from '../recordings/neutral-session.js';
import type { FileAct } from './files/apply-acts.js';

/** A call as it is recorded in the session. */
export interface MappedCall {
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly content: string;
}

/** The wrapped tools that recorded ones are mapped to [§5.1]; tools that are like none of them keep their names. */
const WRAPPED: Readonly<Record<Exclude<ToolKind, 'other'>, string>> = {
  read: 'read',
  write: 'write',
  edit: 'edit',
  patch: 'edit',
  list: 'ls',
  glob: 'find',
  grep: 'grep',
  tree: 'tree',
  shell: 'bash',
};

const LONGEST_DISPLAY = 400;

function displayOf(call: EntryOf<'call'>): string {
  const text = `${call.tool} ${JSON.stringify(call.args)}`;
  return text.length <= LONGEST_DISPLAY ? text : `${text.slice(0, LONGEST_DISPLAY - 1).toWellFormed()}…`;
}

/** The one file that a call shows and does nothing else with. */
function onlyShown(acts: readonly FileAct[]): Extract<FileAct, { kind: 'show' }> | undefined {
  const [act, second] = acts;
  return second === undefined && act?.kind === 'show' ? act : undefined;
}

/** What a call read, as the recording shows it: the path, and all of the text where all was shown. */
export interface WholeText {
  readonly path: string;
  readonly text: string | undefined;
}

/**
 * A recorded call under the name of the wrapped tool that it is mapped to: a read, also one by a shell command, becomes a `read` of the path, and what it
 * keeps of a whole file is the file's own text, as the wrapped tool keeps it. How it was recorded stands in `args_display`; what the model saw is proved by
 * the step.
 */
export function wrappedCall(
  call: EntryOf<'call'>,
  kind: ToolKind,
  acts: readonly FileAct[],
  read: WholeText | undefined,
  output: string,
): MappedCall {
  const recorded = call.args as MappedCall['args'];
  if (kind === 'other') return { tool: call.tool, args: recorded, content: output };
  const shown = onlyShown(acts);
  const argsDisplay = displayOf(call);
  if (read?.text !== undefined) return { tool: WRAPPED.read, args: { path: read.path }, argsDisplay, content: read.text };
  if (shown !== undefined && read !== undefined) {
    const lines = shown.text === '' ? 0 : shown.text.replace(/\n$/, '').split('\n').length;
    return { tool: WRAPPED.read, args: { path: read.path, offset: shown.startLine, limit: lines }, argsDisplay, content: output };
  }
  const [only, second] = acts;
  const lists = kind === 'shell' && only?.kind === 'list' && second === undefined;
  return { tool: lists ? WRAPPED.grep : WRAPPED[kind], args: recorded, argsDisplay, content: output };
}
