import { foreignTool } from '../foreign-tools/tool-table.js';
import { keptArgsHash } from '../objects/kept-args.js';

/** The parts of a call from which its input is shown. */
export interface ShownCall {
  readonly tool: string;
  readonly args: unknown;
}

const WRITES: ReadonlySet<string> = new Set(['write', 'edit', 'patch']);
/** Minimum length of a shown argument. A shorter one is in the call's line, or says little. */
const LEAST_CHARS = 40;

function textsOf(value: unknown, name: string): readonly string[] {
  if (typeof value === 'string')
    return value.length > LEAST_CHARS || value.includes('\n') ? [`[${name}]\n${value}`] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => textsOf(one, Array.isArray(value) ? name : key));
}

/**
 * Returns the texts that a call wrote into files, each below the name of its argument. Undefined
 * for a call that changes no file, and for arguments that are stored as one text.
 */
export function editInput({ tool, args }: ShownCall): string | undefined {
  if (!WRITES.has(foreignTool(tool).kind) || keptArgsHash(args) !== undefined) return undefined;
  const texts = textsOf(args, 'input');
  return texts.length === 0 ? undefined : texts.join('\n');
}
