import { isJsonObject, type JsonObject } from '../json/json-text.js';

/** What came back from a command of mini-swe-agent. */
export interface CommandAnswer {
  /** All that the command printed, where the recording has it; the answer itself may be cut. */
  readonly output: string | undefined;
  readonly failed: boolean;
  readonly cut: boolean;
}

const RETURN_CODE = /^<returncode>(-?\d+)<\/returncode>/;
const OUTPUT = /<output>\n?([\s\S]*)<\/output>/;
const CUT = /<elided_chars>|<output_head>|<warning>\s*The output of your last command was too long/;
const FAILED = /^(?:<exception>|An error occurred|The last command <command>[\s\S]* timed out|Command timed out)/;

/** Reads the answer that the model saw, and the raw output beside it. */
export function commandAnswer(text: string, extra: unknown): CommandAnswer {
  const beside: JsonObject = isJsonObject(extra) ? extra : {};
  const code = typeof beside.returncode === 'number' ? beside.returncode : Number(RETURN_CODE.exec(text)?.[1] ?? 0);
  const raw = typeof beside.raw_output === 'string' ? beside.raw_output : undefined;
  const cut = CUT.test(text);
  return { output: raw ?? (cut ? undefined : OUTPUT.exec(text)?.[1]), failed: code !== 0 || FAILED.test(text), cut };
}

const BLOCK = /```(?:bash|sh|shell|mswea_bash_command)[^\S\n]*\n([\s\S]*?)\n?```/g;

/** The one command that a text without calls carries in a fenced block; undefined for none and for several, which the agent did not run. */
export function fencedCommand(text: string): string | undefined {
  const [first, ...more] = [...text.matchAll(BLOCK)];
  return more.length === 0 ? first?.[1]?.trim() : undefined;
}
