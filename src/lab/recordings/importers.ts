import { claudeCode } from './claude-code/claude-code.js';
import { cline } from './cline/cline.js';
import { codex } from './codex/codex.js';
import { geminiCli } from './gemini-cli/gemini-cli.js';
import type { Importer } from './importer.js';
import { openAiChat } from './openai-chat/openai-chat.js';
import { openHandsLegacy } from './openhands/legacy.js';
import { openHandsSdk } from './openhands/sdk.js';
import { pi } from './pi/pi.js';
import { miniSweAgent } from './swe-agent/mini-swe-agent.js';
import { sweAgent } from './swe-agent/swe-agent.js';

/** Every importer; the one that is surest of the content reads a recording. */
export const IMPORTERS: readonly Importer[] = [
  claudeCode,
  codex,
  pi,
  sweAgent,
  miniSweAgent,
  openHandsLegacy,
  openHandsSdk,
  geminiCli,
  cline,
  openAiChat,
];
