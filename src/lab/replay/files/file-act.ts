import type { PatchHunk } from './patch-envelope.js';
import type { Replacement } from './text-edits.js';

/** What one recorded call does to one file, as its arguments and its answer tell; paths as recorded. */
export type FileAct =
  /** Lines of the file, or all of it. */
  | {
      readonly kind: 'show';
      readonly path: string;
      readonly text: string;
      readonly startLine: number;
      readonly whole: boolean;
      readonly total?: number;
    }
  /** Something of the file that cannot be taken up: it exists. */
  | { readonly kind: 'name'; readonly path: string }
  | { readonly kind: 'list'; readonly paths: readonly string[] }
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'append'; readonly path: string; readonly text: string }
  | { readonly kind: 'replace'; readonly path: string; readonly replacements: readonly Replacement[] }
  | { readonly kind: 'insert'; readonly path: string; readonly afterLine: number; readonly text: string }
  | { readonly kind: 'range'; readonly path: string; readonly first: number; readonly last: number; readonly text: string }
  | { readonly kind: 'update'; readonly path: string; readonly moveTo: string | undefined; readonly hunks: readonly PatchHunk[] }
  | { readonly kind: 'undo'; readonly path: string }
  /** It changes in a way that is not followed. */
  | { readonly kind: 'change'; readonly path: string }
  | { readonly kind: 'delete'; readonly path: string; readonly folder: boolean }
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  | { readonly kind: 'copy'; readonly from: string; readonly to: string }
  /** Any file may change. */
  | { readonly kind: 'anything' };

export type FileActKind = FileAct['kind'];
