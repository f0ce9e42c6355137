import { type PatchHunk, parsePatch } from '../../foreign-tools/patch-envelope.js';
import type { LineReplacement, LineSubstitution, Replacement } from '../../foreign-tools/text-edits.js';

/**
 * The effect of a recorded call on a file, according to the call's arguments and output. Paths are
 * written as in the recording.
 */
export type FileAct =
  /** Shows the whole file or some of its lines. */
  | {
      readonly kind: 'show';
      readonly path: string;
      readonly text: string;
      readonly startLine: number;
      readonly whole: boolean;
      readonly total?: number;
    }
  /** Names an existing file and shows no text that can be used. */
  | { readonly kind: 'name'; readonly path: string }
  | { readonly kind: 'list'; readonly paths: readonly string[] }
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'append'; readonly path: string; readonly text: string }
  | { readonly kind: 'replace'; readonly path: string; readonly replacements: readonly Replacement[] }
  | ({ readonly kind: 'substitute'; readonly path: string } & LineSubstitution)
  | { readonly kind: 'insert'; readonly path: string; readonly afterLine: number; readonly text: string }
  | ({ readonly kind: 'range'; readonly path: string } & LineReplacement)
  | {
      readonly kind: 'update';
      readonly path: string;
      readonly moveTo: string | undefined;
      readonly hunks: readonly PatchHunk[];
    }
  | { readonly kind: 'undo'; readonly path: string }
  /** Changes the file in an unknown way. */
  | { readonly kind: 'change'; readonly path: string }
  | { readonly kind: 'delete'; readonly path: string; readonly folder: boolean }
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  | { readonly kind: 'copy'; readonly from: string; readonly to: string }
  /** May change any file. */
  | { readonly kind: 'anything' };

/** The effect of a patch envelope on one file. */
type PatchAct = Extract<FileAct, { kind: 'write' | 'delete' | 'update' }>;

/** Returns the effects of a patch envelope. Undefined if the text is not an envelope. */
export function patchActs(envelope: string): readonly PatchAct[] | undefined {
  return parsePatch(envelope)?.map((change): PatchAct => {
    if (change.kind === 'add') return { kind: 'write', path: change.path, text: change.text };
    if (change.kind === 'delete') return { kind: 'delete', path: change.path, folder: false };
    return change;
  });
}
