import type { Agent } from './agent.js';
import { CLAUDE } from './known/claude.js';
import { CLINE } from './known/cline.js';
import { CODEX } from './known/codex.js';
import { CURSOR } from './known/cursor.js';
import { GEMINI } from './known/gemini.js';
import { OPENCODE } from './known/opencode.js';
import { PI } from './known/pi.js';
import { VSCODE } from './known/vscode.js';

/** Every agent that a setup knows, in the order in which they are listed. */
export const AGENTS: readonly Agent[] = [CLAUDE, CODEX, OPENCODE, GEMINI, PI, VSCODE, CURSOR, CLINE];
