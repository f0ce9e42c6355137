import { claudeCode } from './claude-code.js';
import { cline } from './cline.js';
import { codex } from './codex.js';
import { geminiCli } from './gemini-cli.js';
import type { Importer } from './importer.js';
import { miniSweAgent } from './mini-swe-agent.js';
import { openAiChat } from './openai-chat.js';
import { openHandsLegacy } from './openhands-legacy.js';
import { openHandsSdk } from './openhands-sdk.js';
import { pi } from './pi.js';
import { sweAgent } from './swe-agent.js';

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
