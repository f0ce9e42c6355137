import { showsShortIds } from '../session/object-reference.js';
import { bashTool } from './bash-tool.js';
import { contextTool } from './context-tool.js';
import type { ToolSettings } from './define-tool.js';
import { findTool, lsTool, treeTool } from './folder-tools.js';
import { grepTool } from './grep-tool.js';
import { readTool } from './read-tool.js';
import { recallTool } from './recall-tool.js';
import type { Tool } from './tool.js';
import { verbTool } from './verb-tools.js';
import { editTool, writeTool } from './write-tools.js';

/** Default limits of an answer. They are the smallest limits among common agents. */
export const DEFAULT_OUTPUT_LIMITS = { chars: 40_000, lines: 2_000 } as const;

/**
 * Bounds of the setting for the longest answer. With fewer characters no hint fits, and with more a
 * line of the protocol becomes too long.
 */
const OUTPUT_CHARS = { least: 1_000, most: 1_000_000 } as const;

/** Options that select an agent's tools and limit their answers. */
export interface ToolOptions {
  /** Whether to offer `bash`, which has all rights of this process. */
  readonly bash?: boolean;
  /** Whether to leave out `write`, `edit` and `bash`. */
  readonly readOnly?: boolean;
  readonly maxOutputChars?: number;
  readonly maxOutputLines?: number;
  readonly strict?: boolean;
  readonly shortIds?: boolean;
}

/** Creates the tools of [§3.3], always in the same order. */
export function createTools(options: ToolOptions = {}): readonly Tool[] {
  const {
    bash = false,
    readOnly = false,
    maxOutputChars = DEFAULT_OUTPUT_LIMITS.chars,
    maxOutputLines = DEFAULT_OUTPUT_LIMITS.lines,
  } = options;
  const settings: ToolSettings = {
    limits: {
      chars: Math.min(OUTPUT_CHARS.most, Math.max(OUTPUT_CHARS.least, maxOutputChars)),
      lines: Math.max(20, maxOutputLines),
    },
    strict: options.strict ?? false,
    shortIds: showsShortIds(options),
  };
  return [
    readTool(settings),
    ...(readOnly ? [] : [writeTool(settings), editTool(settings)]),
    lsTool(settings),
    findTool(settings),
    grepTool(settings),
    treeTool(settings),
    ...(bash && !readOnly ? [bashTool(settings)] : []),
    verbTool('activate', settings),
    verbTool('deactivate', settings),
    verbTool('pin', settings),
    verbTool('unpin', settings),
    contextTool(settings),
    recallTool(settings),
  ];
}
